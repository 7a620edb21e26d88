/** Makes the bootstrap file that Envoy starts with: the built-in document, or a template of the user. */
import { join } from "node:path";
import { MeshError } from "#lib/mesh-error.ts";
import type { AgentContext } from "../agent-context.ts";
import { pathIn } from "../place.ts";
import { googlePlatform } from "../sts/google-platform.ts";
import { envoyBootstrap, LIGHTSTEP_TOKEN_FILE } from "./bootstrap.ts";
import type { BootstrapInput } from "./input.ts";
import { refusalOf, writeBootstrap, writePrivately } from "./write.ts";

/** What it depends on. */
export type CreateBootstrapInput = Pick<
  AgentContext,
  "node" | "proxyConfig" | "addresses" | "config" | "flags" | "log" | "place" | "env"
>;

/** Writes it into the configuration folder and gives the name of the file. */
export async function createBootstrap(context: CreateBootstrapInput, fileName: string): Promise<string> {
  const { proxyConfig, log, place } = context;
  const input = bootstrapInput(context);
  assertTracer(context);
  const configPath = pathIn(place, proxyConfig.configPath);
  const token = proxyConfig.tracing?.lightstep?.accessToken;
  if (token !== undefined) await writePrivately(join(configPath, LIGHTSTEP_TOKEN_FILE), token);
  const template = templateFile(context);
  if (template !== "") {
    const { renderBootstrap } = await import("./custom.ts");
    // Envoy tells the format of a file by its name.
    const rendered = /\.yaml(\.tmpl)?$/.test(template) ? fileName.replace(/\.json$/, ".yaml") : fileName;
    const path = join(configPath, rendered);
    await writePrivately(path, await renderBootstrap(pathIn(place, template), input, context.env));
    await assertAccepted(context, { template, path });
    return rendered;
  }
  const { bootstrap, problems } = envoyBootstrap(input);
  for (const problem of problems) log.warn(problem);
  const { binaryPath } = proxyConfig;
  const { removed } = await writeBootstrap(place.extendBootstrap(bootstrap), { configPath, binaryPath, fileName });
  for (const name of removed) log.warn(`This Envoy has no ${name}: it is left out`);
  return fileName;
}

/** Spans for Stackdriver belong to a project, which only the platform knows. */
function assertTracer({ proxyConfig, node }: CreateBootstrapInput): void {
  if (proxyConfig.tracing?.stackdriver === undefined || googlePlatform(node.metadata).project !== "") return;
  throw new MeshError("PROXY_CONFIG_INVALID", "unable to process Stackdriver tracer: missing GCP Project");
}

/** Envoy itself is asked, since it takes more than JSON. An override may still complete what it would refuse. */
async function assertAccepted(
  { config, proxyConfig }: CreateBootstrapInput,
  { template, path }: { readonly template: string; readonly path: string },
): Promise<void> {
  if (config.envoy.bootstrapOverrideFile !== "") return;
  const words = await refusalOf(proxyConfig.binaryPath, path);
  if (words === "") return;
  const reason = words
    .trim()
    .split("\n")
    .at(-1)
    ?.replace(/^(\[.*?\] ?)*(error initializing configuration '.*?': )?/, "");
  throw new MeshError("BOOTSTRAP_TEMPLATE_INVALID", `Envoy refuses ${path}, which ${template} gave: ${reason}`);
}

/** ISTIO_BOOTSTRAP before the configuration, of which `--templateFile` is part; empty for the built-in bootstrap. */
function templateFile({ config, proxyConfig }: CreateBootstrapInput): string {
  return config.envoy.bootstrapTemplate || (proxyConfig.proxyBootstrapTemplatePath ?? "");
}

function bootstrapInput({ node, proxyConfig, addresses, config, flags }: CreateBootstrapInput): BootstrapInput {
  return {
    node,
    proxyConfig,
    addresses,
    logAsJson: flags.logAsJson,
    dualStack: config.envoy.dualStack,
    deltaXds: config.envoy.deltaXds,
    xdsRootCert: config.xdsRootCa,
    envoyStatusPort: config.envoy.statusPort,
    envoyPrometheusPort: config.envoy.prometheusPort,
    statusPortProxyProtocol: config.envoy.statusPortProxyProtocol,
    outlierLogPath: flags.outlierLogPath,
    workloadIdentitySocketFile: config.identity.socketFile,
    fileCredentials: "file-credential" in node.extraMetadata,
    exitOnZeroActiveConnections: config.envoy.exitOnZeroActiveConnections,
    hostIp: config.hostIp,
    fips: config.envoy.fips,
    stripFragment: config.envoy.stripFragment,
  };
}
