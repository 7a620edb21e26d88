/** Settings of `istio-iptables` to the lines it would execute: upstream goldens and recorded mixes of flags. */
import { join } from "node:path";
import { applyCapture, cleanCapture, logFinalState } from "#capture/apply.ts";
import { plainBackends } from "#capture/iptables/backend.ts";
import { recordedCommands } from "#capture/system/commands.ts";
import { SILENT } from "#lib/log/log.ts";
import { compareText } from "../compare.ts";
import type { Group, Outcome } from "../harness.ts";
import { type CaptureConfig, captureCases, settingsOf } from "./capture-cases.ts";

export const iptablesCapture: Group = {
  name: "iptables capture",
  cases: (folder) => captureCases(join(folder, "tools/istio-iptables/pkg/capture"), checkLines),
};

async function checkLines(config: CaptureConfig, expected: string): Promise<Outcome> {
  const { settings, problem } = settingsOf(config);
  if (settings === undefined) return { differs: () => problem };
  const commands = recordedCommands();
  const machine = { dialect: "iptables", backends: await plainBackends(commands), nftListing: undefined } as const;
  const input = { settings, machine, commands, log: SILENT, dryRun: true };
  await (config.CLEANUP_ONLY === true ? cleanCapture(input) : applyCapture(input));
  await logFinalState(input);
  return compareText(commands.lines.join("\n"), expected);
}
