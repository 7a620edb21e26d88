/** What Envoy is started with: its bootstrap, its command line, its user. */
import { join } from "node:path";
import { readUtf8 } from "#lib/files/read-utf8.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { AgentContext } from "./agent-context.ts";
import { createBootstrap } from "./bootstrap/create.ts";
import { withHostIp } from "./bootstrap/host-ip.ts";
import { envoyArguments, type HotRestartArguments } from "./envoy/arguments.ts";
import type { EnvoyCommand } from "./envoy/process.ts";
import { failingAs } from "./failing-as.ts";
import { pathIn } from "./place.ts";

/** All of it, but for what differs between epochs. */
export interface EnvoyPlan {
  /** Path of the bootstrap as Envoy sees it. */
  readonly configFile: string;
  /** False for a bootstrap that the user brings. */
  readonly written: boolean;
  readonly command: (configFile: string, hotRestart?: HotRestartArguments) => EnvoyCommand;
}

/** The user that Istio's images have for the proxy, whose traffic is not captured. */
const PROXY_USER = 1337;
/** The ciphers that FIPS 140-2 allows with TLS 1.2, for Google's gRPC library inside Envoy. */
const FIPS_CIPHERS =
  "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384";

/** Writes the bootstrap, unless the user brings one, and says how to start Envoy with it. */
export async function planEnvoy(context: AgentContext, fileName = "envoy-rev.json"): Promise<EnvoyPlan> {
  const { proxyConfig, flags, config, addresses, place, env } = context;
  const { customConfigFile, binaryPath, configPath } = proxyConfig;
  const configFile =
    customConfigFile ??
    join(configPath, await failingAs("failed to generate bootstrap config", () => createBootstrap(context, fileName)));
  const bootstrapOverride = await overrideOf(context);
  return {
    configFile,
    written: customConfigFile === undefined,
    command: (configFile, hotRestart) => ({
      binaryPath,
      args: envoyArguments({
        configFile,
        proxyConfig,
        addresses,
        logLevel: flags.proxyLogLevel,
        componentLogLevel: flags.proxyComponentLogLevel,
        skipDeprecatedLogs: config.envoy.skipDeprecatedLogs,
        coreDump: config.envoy.coreDump,
        bootstrapOverride,
        hotRestart,
      }),
      enter: place.enter,
      workingFolder: place.folder,
      user: place.enter.length === 0 ? envoyUser(context) : undefined,
      env: config.envoy.fips ? { ...env, GRPC_SSL_CIPHER_SUITES: FIPS_CIPHERS } : env,
      output: place.output,
    }),
  };
}

/**
 * The user that Envoy gets, where it is not the agent's. An agent that is root and serves DNS on port 53 stands in a
 * container without rules of traffic capture; there its Envoy must not be root.
 */
export function envoyUser({ place, config }: Pick<AgentContext, "place" | "config">): number | undefined {
  if (place.envoyUser !== undefined) return place.envoyUser;
  return process.getuid?.() === 0 && config.dns.address.endsWith(":53") ? PROXY_USER : undefined;
}

/** What is laid over the bootstrap. As with Istio's agent, one that cannot be read keeps nothing from starting. */
async function overrideOf({ config, place, log }: AgentContext): Promise<string | undefined> {
  const file = config.envoy.bootstrapOverrideFile;
  if (file === "") return undefined;
  try {
    return await overrideJson(pathIn(place, file), config.hostIp);
  } catch (thrown) {
    log.warn(`Failed to read bootstrap override: ${errorText(thrown)}`);
    return undefined;
  }
}

/** Envoy takes it on the command line. */
async function overrideJson(file: string, hostIp: string): Promise<string> {
  let text: string;
  try {
    text = readUtf8(file);
  } catch (cause) {
    throw new MeshError("BOOTSTRAP_OVERRIDE_UNREADABLE", `Cannot read ISTIO_BOOTSTRAP_OVERRIDE ${file}`, { cause });
  }
  const { readDocument } = await import("#lib/yaml/read.ts");
  const { value, error } = readDocument(withHostIp(text, hostIp));
  if (error === undefined) return JSON.stringify(value);
  throw new MeshError(
    "BOOTSTRAP_OVERRIDE_UNREADABLE",
    `ISTIO_BOOTSTRAP_OVERRIDE ${file}: line ${error.line} ${error.message}`,
  );
}
