import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { MeshError } from "#lib/mesh-error.ts";
import type { AgentContext } from "./agent-context.ts";
import { envoyBootstrap, LIGHTSTEP_TOKEN_FILE } from "./bootstrap/bootstrap.ts";
import { writeBootstrap, writePrivately } from "./bootstrap/write.ts";
import { envoyArguments } from "./envoy/arguments.ts";
import type { EnvoyCommand } from "./envoy/process.ts";

export interface PreparedEnvoy {
  readonly command: EnvoyCommand;
  /** The bootstrap, when the agent wrote it; to be removed with the process. */
  readonly writtenFile: string | undefined;
}

/** Writes the bootstrap, unless the user brings one, and says how to start Envoy with it. */
export async function envoyCommand(context: AgentContext): Promise<PreparedEnvoy> {
  const { proxyConfig, flags, config, addresses } = context;
  const writtenFile = proxyConfig.customConfigFile === undefined ? await bootstrapFile(context) : undefined;
  const override = config.envoy.bootstrapOverrideFile;
  const args = envoyArguments({
    configFile: writtenFile ?? proxyConfig.customConfigFile ?? "",
    proxyConfig,
    addresses,
    logLevel: flags.proxyLogLevel,
    componentLogLevel: flags.proxyComponentLogLevel,
    skipDeprecatedLogs: config.envoy.skipDeprecatedLogs,
    coreDump: config.envoy.coreDump,
    bootstrapOverride: override === "" ? undefined : await overrideJson(override, config.hostIp),
  });
  return { command: { binaryPath: proxyConfig.binaryPath, args }, writtenFile };
}

async function bootstrapFile({ node, proxyConfig, addresses, config, flags, log }: AgentContext): Promise<string> {
  const { bootstrap, problems } = envoyBootstrap({
    node,
    proxyConfig,
    addresses,
    logAsJson: flags.logAsJson,
    dualStack: config.envoy.dualStack,
    envoyStatusPort: config.envoy.statusPort,
    envoyPrometheusPort: config.envoy.prometheusPort,
    statusPortProxyProtocol: config.envoy.statusPortProxyProtocol,
    outlierLogPath: flags.outlierLogPath,
    workloadIdentitySocketFile: config.identity.socketFile,
    exitOnZeroActiveConnections: config.envoy.exitOnZeroActiveConnections,
    hostIp: config.hostIp,
    fips: config.envoy.fips,
    stripFragment: config.envoy.stripFragment,
  });
  for (const problem of problems) log.warn(problem);
  const template = config.envoy.bootstrapTemplate || flags.templateFile || proxyConfig.proxyBootstrapTemplatePath;
  if (template !== undefined && template !== "")
    log.warn(`Bootstrap template ${template} is not supported: the built-in bootstrap is used`);
  const token = proxyConfig.tracing?.lightstep?.accessToken;
  if (token !== undefined) await writePrivately(join(proxyConfig.configPath, LIGHTSTEP_TOKEN_FILE), token);
  const { path, removed } = await writeBootstrap(bootstrap, proxyConfig);
  for (const name of removed) log.warn(`This Envoy has no ${name}: it is left out`);
  return path;
}

/** Envoy takes it on the command line. `$(HOST_IP)` stands for the address of the machine, in brackets where it is IPv6. */
async function overrideJson(file: string, hostIp: string): Promise<string> {
  const host = hostIp.includes(":") ? `[${hostIp}]` : hostIp;
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    throw new MeshError("BOOTSTRAP_OVERRIDE_UNREADABLE", "Cannot read ISTIO_BOOTSTRAP_OVERRIDE", { cause });
  }
  const { readDocument } = await import("#lib/yaml/read.ts");
  const { value, error } = readDocument(text.replaceAll("[$(HOST_IP)]", host).replaceAll("$(HOST_IP)", host));
  if (error === undefined) return JSON.stringify(value);
  throw new MeshError(
    "BOOTSTRAP_OVERRIDE_UNREADABLE",
    `ISTIO_BOOTSTRAP_OVERRIDE ${file}: line ${error.line} ${error.message}`,
  );
}
