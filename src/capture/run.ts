/** One run of `istio-iptables` or `istio-clean-iptables`, from options to rules. */
import { writeFile } from "node:fs/promises";
import type { Env } from "#lib/env-reader.ts";
import type { Logger } from "#lib/log.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { applyCapture, cleanCapture, logFinalState } from "./apply.ts";
import {
  type Backend,
  backendsToClean,
  detectBackend,
  forcedBackend,
  missingBackend,
  PLAIN_BACKENDS,
} from "./backend.ts";
import { type Commands, recordedCommands, systemCommands } from "./commands.ts";
import { type CaptureOptions, type GivenOptions, readOptions } from "./options.ts";
import { environmentBlock, variablesBlock } from "./report.ts";
import type { Family } from "./rule.ts";
import { parseCaptureSettings } from "./settings.ts";
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
  if (options.nativeNftables) log.warn("--native-nftables is not supported yet: iptables is used");
  const system = await commandsIn(options.networkNamespace, env);
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
  log.info(environmentBlock(env));
  log.info(variablesBlock({ options, settings, around }));
  if (options.skipRuleApply) return;

  const recorded = options.dryRun ? recordedCommands() : undefined;
  const commands = recorded ?? system;
  const backends =
    recorded === undefined ? await findBackends({ options, commands, log }) : Object.values(PLAIN_BACKENDS);
  const input = { settings, backends, commands, log, force: options.forceApply, withoutRoutes: options.dryRun };
  try {
    await (options.cleanupOnly ? cleanCapture(input) : applyCapture(input));
  } finally {
    await logFinalState(input);
  }
  const file = env.DRY_RUN_FILE_PATH ?? "";
  if (recorded !== undefined && file !== "") await writeFile(file, `${recorded.lines.join("\n")}\n`);
}

async function commandsIn(networkNamespace: string, env: Env): Promise<Commands> {
  const commands = systemCommands({ env, networkNamespace });
  if (networkNamespace === "") return commands;
  const { code, stderr } = await commands.run("true", []);
  if (code === 0) return commands;
  throw new MeshError("CAPTURE_FAILED", `Cannot enter the network namespace "${networkNamespace}": ${stderr}`);
}

interface FindInput {
  readonly options: CaptureOptions;
  readonly commands: Commands;
  readonly log: Logger;
}

/** IPv4 must work; IPv6 is left out, and said so, when its programs are missing. */
async function findBackends({ options, commands, log }: FindInput): Promise<readonly Backend[]> {
  const kind = options.forcedBinary;
  const find = (family: Family) =>
    kind === "" ? detectBackend(commands, family) : forcedBackend(commands, family, kind);
  const v4 = await find("v4");
  if (v4 === undefined) throw await missingBackend(commands);
  if (options.cleanupOnly && kind === "") {
    return [...(await backendsToClean(commands, "v4")), ...(await backendsToClean(commands, "v6"))];
  }
  const v6 = await find("v6");
  if (v6 === undefined) log.warn("IPv6 is not captured: no ip6tables program works");
  return v6 === undefined ? [v4] : [v4, v6];
}
