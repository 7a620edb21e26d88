/** Settings of `istio-iptables --native-nftables` to the transaction for `nft`. */
import { join } from "node:path";
import { inetRules } from "#capture/nftables/inet-rules.ts";
import { formatRemoval, formatRuleset } from "#capture/nftables/ruleset.ts";
import { compareText } from "../compare.ts";
import type { Group, Outcome } from "../harness.ts";
import { type CaptureConfig, captureCases, settingsOf } from "./capture-cases.ts";

export const nftablesCapture: Group = {
  name: "nftables capture",
  cases: (folder) => captureCases(join(folder, "tools/istio-nftables/pkg/capture"), checkRuleset),
};

function checkRuleset(config: CaptureConfig, expected: string): Outcome {
  const { settings, problem } = settingsOf(config);
  if (settings === undefined) return { differs: () => problem };
  const commands = config.CLEANUP_ONLY === true ? formatRemoval() : formatRuleset(inetRules(settings));
  return compareText(commands.join("\n"), expected);
}
