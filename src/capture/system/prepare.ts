/** From flags and variables to settings: what every run begins with. */
import type { Env } from "#lib/env/env-table.ts";
import type { Logger } from "#lib/log/log.ts";
import { MeshError } from "#lib/mesh-error.ts";
import type { Dialect } from "../rules/family.ts";
import { type CaptureOptions, type GivenOptions, readOptions } from "../settings/options.ts";
import { type CaptureSettings, parseCaptureSettings, type Surroundings } from "../settings/settings.ts";
import { type Commands, systemCommands } from "./commands.ts";
import { detectSurroundings } from "./surroundings.ts";

export interface PrepareInput {
  /** What the command line gave. */
  readonly given: GivenOptions;
  readonly env: Env;
  readonly log: Logger;
}

export interface Prepared {
  readonly options: CaptureOptions;
  readonly settings: CaptureSettings;
  readonly around: Surroundings;
  /** Programs run by these work in the network namespace that is meant. */
  readonly commands: Commands;
}

/** Throws CAPTURE_OPTIONS with everything that is wrong. Nothing is changed. */
export async function prepareCapture({ given, env, log }: PrepareInput): Promise<Prepared> {
  const { options, problems } = readOptions(given, env);
  for (const { field, message } of problems) log.warn(`${field} ${message}`);
  const commands = await commandsIn(options, env);
  const around = await detectSurroundings({
    commands,
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
  return { options, settings, around, commands };
}

export function dialectOf(options: CaptureOptions): Dialect {
  return options.nativeNftables ? "nftables" : "iptables";
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
