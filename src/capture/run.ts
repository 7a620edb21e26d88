/** One run of `istio-iptables` or `istio-clean-iptables`, from options to rules. */
import { writeFile } from "node:fs/promises";
import type { Env } from "#lib/env-reader.ts";
import type { Logger } from "#lib/log.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { applyCapture, cleanCapture, logFinalState } from "./apply.ts";
import { type BackendKind, plainBackends } from "./backend.ts";
import { type Commands, recordedCommands, systemCommands } from "./commands.ts";
import { type Machine, readMachine } from "./machine.ts";
import { type CaptureOptions, type GivenOptions, readOptions } from "./options.ts";
import { environmentBlock, variablesBlock } from "./report.ts";
import type { Dialect } from "./rules/family.ts";
import { type CaptureSettings, parseCaptureSettings } from "./settings.ts";
import { detectSurroundings } from "./surroundings.ts";

export interface CaptureRun {
  /** What the command line gave. */
  readonly given: GivenOptions;
  readonly env: Env;
  readonly log: Logger;
}

/** Makes the rules, or with `cleanupOnly` removes them. Throws a `MeshError` and changes nothing when it cannot. */
export async function runCapture({ given, env, log }: CaptureRun): Promise<void> {
  const { options, problems } = readOptions(given, env);
  for (const { field, message } of problems) log.warn(`${field} ${message}`);
  if (options.runValidation) {
    throw new MeshError("CAPTURE_OPTIONS", "Cannot run with --run-validation: it is not supported yet");
  }
  const system = await commandsIn(options, env);
  const around = await detectSurroundings({
    commands: system,
    dualStack: options.dualStack,
    nameServers: options.redirectDns && !options.captureAllDns,
    proxyUser: env.ENVOY_USER ?? "istio-proxy",
  });
  const { value: settings, problems: wrong } = parseCaptureSettings(options, around);
  if (settings === undefined) {
    const list = wrong.map(({ field, message }) => `${field} ${message}`).join("; ");
    throw new MeshError("CAPTURE_OPTIONS", `Cannot set up traffic capture: ${list}`);
  }
  if (options.redirectDns && settings.dns === "off") {
    log.warn("DNS is not captured: /etc/resolv.conf names no server, and --capture-all-dns is not set");
  }
  if (options.dryRun) log.info("running iptables in dry-run mode, no rule changes will be made");
  if (options.nativeNftables) log.info("native nftables enabled, using nft rules for traffic redirection");
  log.info(environmentBlock(env));
  log.info(variablesBlock({ options, settings, around }));
  if (options.skipRuleApply) return;
  if (options.dryRun) await dryRun({ options, settings, log }, env.DRY_RUN_FILE_PATH ?? "");
  else await change({ options, settings, log }, system);
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
  await finish({ options, settings, log }, { commands, machine, withoutRoutes: false });
}

/** Runs nothing, but writes down what would be run, in a file if there is a name for one. */
async function dryRun({ options, settings, log }: Change, file: string): Promise<void> {
  const commands = recordedCommands();
  const dialect = dialectOf(options);
  const machine: Machine =
    dialect === "iptables"
      ? { dialect, backends: await plainBackends(commands), nftListing: undefined }
      : { dialect, backends: [], nftListing: "" };
  await finish({ options, settings, log }, { commands, machine, withoutRoutes: true });
  if (file !== "") await writeFile(file, `${commands.lines.join("\n")}\n`);
}

interface Place {
  readonly commands: Commands;
  readonly machine: Machine;
  readonly withoutRoutes: boolean;
}

async function finish({ options, settings, log }: Change, place: Place): Promise<void> {
  const input = { settings, log, ...place, force: options.forceApply, asCommands: !options.restoreFormat };
  try {
    await (options.cleanupOnly ? cleanCapture(input) : applyCapture(input));
  } finally {
    await logFinalState(input);
  }
}

function dialectOf(options: CaptureOptions): Dialect {
  return options.nativeNftables ? "nftables" : "iptables";
}

/** The back end that the user insists on. A bare version says nothing about it. */
function backendKind({ forcedBinary, iptablesVersion }: CaptureOptions): BackendKind | undefined {
  const wish = forcedBinary === "" ? iptablesVersion : forcedBinary;
  if (/nft|nf_tables/.test(wish)) return "nft";
  return wish.includes("legacy") ? "legacy" : undefined;
}

async function commandsIn({ networkNamespace, cniMode }: CaptureOptions, env: Env): Promise<Commands> {
  // A CNI plugin runs in the file system of the host, whose lock has nothing to do with the pod's rules.
  const lock = cniMode && networkNamespace !== "" ? { XTABLES_LOCKFILE: networkNamespace } : {};
  const commands = systemCommands({ env: { ...env, ...lock }, networkNamespace });
  if (networkNamespace === "") return commands;
  const { code, stderr } = await commands.run("true", []);
  if (code === 0) return commands;
  throw new MeshError("CAPTURE_FAILED", `Cannot enter the network namespace "${networkNamespace}": ${stderr}`);
}
