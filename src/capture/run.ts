/** One run of `istio-iptables` or `istio-clean-iptables`, from options to rules. */
import { writeFile } from "node:fs/promises";
import { parseDuration } from "@mizzen/go-text/duration";
import type { Logger } from "#lib/log/log.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { applyCapture, cleanCapture, logFinalState } from "./apply.ts";
import { type BackendKind, plainBackends } from "./iptables/backend.ts";
import { type Machine, readMachine } from "./machine.ts";
import { readAccounts, withNumericIds } from "./settings/accounts.ts";
import type { CaptureOptions } from "./settings/options.ts";
import { environmentBlock, variablesBlock } from "./settings/report.ts";
import type { CaptureSettings } from "./settings/settings.ts";
import { type Commands, recordedCommands } from "./system/commands.ts";
import { dialectOf, type PrepareInput, prepareCapture } from "./system/prepare.ts";
import { validateCapture } from "./validation/validate.ts";

export interface CaptureRun extends PrepareInput {
  /** Runs the same command in another network namespace, without applying rules; resolves with its exit code. */
  readonly again?: (networkNamespace: string) => Promise<number>;
}

/**
 * Makes the rules, or with `cleanupOnly` removes them, and proves that they work where that is asked for. Throws a
 * `MeshError` and changes nothing when it cannot.
 */
export async function runCapture(run: CaptureRun): Promise<void> {
  const { log, env } = run;
  const { options, settings, around, commands } = await prepareCapture(run);
  if (options.dryRun) log.info("running iptables in dry-run mode, no rule changes will be made");
  if (options.nativeNftables) log.info("native nftables enabled, using nft rules for traffic redirection");
  log.info("", {}, environmentBlock(env));
  log.info("", {}, variablesBlock({ options, settings, around }));
  if (!options.skipRuleApply) {
    if (options.dryRun) await dryRun({ options, settings, log }, env.DRY_RUN_FILE_PATH ?? "");
    else await change({ options, settings, log }, commands);
  }
  if (options.runValidation) await validate({ options, settings, log }, run.again);
}

/** Real connections can only be made from inside. */
async function validate({ options, settings, log }: Change, again: CaptureRun["again"]): Promise<void> {
  const namespace = options.networkNamespace;
  if (namespace !== "") {
    if ((await again?.(namespace)) === 0) return;
    throw new MeshError("CAPTURE_INEFFECTIVE", `Cannot find traffic captured in the network namespace "${namespace}"`);
  }
  await validateCapture({
    settings: withNumericIds(settings, await readAccounts()),
    dialect: dialectOf(options),
    port: Number(options.probePort),
    timeoutMs: parseDuration(options.probeTimeout) ?? 0,
    log,
  });
}

interface Change {
  readonly options: CaptureOptions;
  readonly settings: CaptureSettings;
  readonly log: Logger;
}

async function change({ options, settings, log }: Change, commands: Commands): Promise<void> {
  const machine = await readMachine(commands, {
    dialect: dialectOf(options),
    kind: backendKind(options),
    cleanup: options.cleanupOnly,
  });
  if (machine.dialect === "iptables" && !machine.backends.some(({ backend }) => backend.family === "v6")) {
    log.warn("IPv6 is not captured: no ip6tables program works");
  }
  await finish({ options, settings, log }, { commands, machine, dryRun: false });
}

/** Runs nothing, but writes down what would be run, in a file if there is a name for one. */
async function dryRun({ options, settings, log }: Change, file: string): Promise<void> {
  const commands = recordedCommands();
  const dialect = dialectOf(options);
  const machine: Machine =
    dialect === "iptables"
      ? { dialect, backends: await plainBackends(commands), nftListing: undefined }
      : { dialect, backends: [], nftListing: "" };
  await finish({ options, settings, log }, { commands, machine, dryRun: true });
  if (file !== "") await writeFile(file, `${commands.lines.join("\n")}\n`);
}

interface Place {
  readonly commands: Commands;
  readonly machine: Machine;
  readonly dryRun: boolean;
}

async function finish({ options, settings, log }: Change, place: Place): Promise<void> {
  const input = { settings, log, ...place, force: options.forceApply, asCommands: !options.restoreFormat };
  try {
    await (options.cleanupOnly ? cleanCapture(input) : applyCapture(input));
  } finally {
    await logFinalState(input);
  }
}

/** The back end that the user insists on. A bare version says nothing about it. */
function backendKind({ forcedBinary, iptablesVersion }: CaptureOptions): BackendKind | undefined {
  const wish = forcedBinary === "" ? iptablesVersion : forcedBinary;
  if (/nft|nf_tables/.test(wish)) return "nft";
  return wish.includes("legacy") ? "legacy" : undefined;
}
