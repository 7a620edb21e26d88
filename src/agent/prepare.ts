/** What the agent must know before it starts anything: who the proxy is and how it is configured. */

import { lookup } from "node:dns/promises";
import { readFileSync } from "node:fs";
import { type ProxyConfig, readProxyConfig } from "#config/proxy-config/proxy-config.ts";
import type { Env } from "#lib/env/env-table.ts";
import { readUtf8 } from "#lib/files/read-utf8.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { formatListenAddress } from "#lib/net/listen-address.ts";
import { ISTIO_VERSION } from "#lib/version.ts";
import { formatYaml } from "#lib/yaml/format.ts";
import type { AgentConfig } from "./agent-config.ts";
import { parseDownwardApi } from "./downward-api.ts";
import { wrongLogLevels } from "./envoy/arguments.ts";
import { failingAs } from "./failing-as.ts";
import { instanceAddresses } from "./instance-addresses.ts";
import { type Labels, nodeId, type ProxyNode, type ProxyType, proxyNode } from "./node.ts";
import { type Place, pathIn } from "./place.ts";
import { discoverPlatform } from "./platform/discover.ts";
import { CREDENTIAL_SOCKET, findForeignServer, isServedByOthers } from "./sds/existing-socket.ts";

/** Of `pilot-agent proxy`. */
export interface ProxyFlags {
  readonly type: ProxyType;
  /** Empty for `NAMESPACE.svc.cluster.local`. */
  readonly domain: string;
  readonly meshConfig: string;
  readonly stsPort: number;
  /** What exchanges tokens on that port; empty for the default. */
  readonly tokenManagerPlugin: string;
  readonly serviceCluster: string;
  readonly proxyLogLevel: string;
  readonly proxyComponentLogLevel: string;
  /** 0 is unset. */
  readonly concurrency: number;
  readonly templateFile: string;
  readonly outlierLogPath: string;
  /** Serve profiles on the debug socket. */
  readonly profiling: boolean;
  readonly logAsJson: boolean;
}

export interface PrepareInput {
  readonly flags: ProxyFlags;
  readonly config: AgentConfig;
  readonly env: Env;
  readonly log: Logger;
  /** Where the workload lives. */
  readonly place: Place;
}

export interface Prepared {
  readonly proxyConfig: ProxyConfig;
  readonly addresses: readonly string[];
  readonly dnsDomain: string;
  readonly node: ProxyNode;
  /** A foreign SDS server gives the workload's certificate. */
  readonly servedByOthers: boolean;
}

const ANNOTATIONS_FILE = "./etc/istio/pod/annotations";
const LABELS_FILE = "./etc/istio/pod/labels";
const EXCLUDE_INTERFACES = "traffic.sidecar.istio.io/excludeInterfaces";

/**
 * Rejects when the configuration cannot be used, with all reasons. `foreignSds` is what was found before anything was
 * started: later our own SDS server would be taken for a foreign one.
 */
export async function prepare(input: PrepareInput, foreignSds?: boolean): Promise<Prepared> {
  const { flags, config, log, place } = input;
  const podAnnotations = readDownwardApi(pathIn(place, ANNOTATIONS_FILE), log);
  const podLabels = readDownwardApi(pathIn(place, LABELS_FILE), log);
  const excluded = podAnnotations?.[EXCLUDE_INTERFACES]?.split(",") ?? [];
  const addresses = instanceAddresses(config.instanceIp, place.interfaces(), excluded);
  const dnsDomain = flags.domain === "" ? `${config.podNamespace}.svc.cluster.local` : flags.domain;
  const identity = { type: flags.type, name: `${config.podName}.${config.podNamespace}`, dnsDomain, addresses };
  log.info("Proxy role", {
    ips: addresses,
    type: identity.type,
    id: identity.name,
    domain: dnsDomain,
  });
  for (const part of wrongLogLevels(flags.proxyLogLevel))
    log.warn(`--proxyLogLevel: "${part}" is not of the form component:level, it is ignored`);
  const proxyConfig = await effectiveConfig(input, podAnnotations);
  const platform = await discoverPlatform({
    config: config.platform,
    ipv6: addresses.some((address) => address.includes(":")),
    log,
  });
  const servedByOthers = foreignSds ?? (await findSdsServer(input));
  const node = proxyNode({
    id: nodeId(identity),
    addresses,
    env: input.env,
    proxyConfig,
    podLabels,
    podAnnotations,
    platform,
    credentialSocket: await isServedByOthers(pathIn(place, CREDENTIAL_SOCKET)),
    fileCredentials: servedByOthers,
    pilotSubjectAltNames: proxyConfig.controlPlaneAuthPolicy === undefined ? [] : [pilotSubjectAltName(proxyConfig)],
    envoyStatusPort: config.envoy.statusPort,
    envoyPrometheusPort: config.envoy.prometheusPort,
    exitOnZeroActiveConnections: config.envoy.exitOnZeroActiveConnections,
    metadataDiscovery: config.envoy.metadataDiscovery,
    skipDeprecatedLogs: config.envoy.skipDeprecatedLogs,
    workloadIdentitySocketFile: config.identity.socketFile,
    outlierLogPath: flags.outlierLogPath,
    stsPort: flags.stsPort,
    version: ISTIO_VERSION,
  });
  for (const warning of node.warnings) log.warn(warning);
  if (node.problems.length > 0) {
    throw new MeshError("NODE_METADATA_INVALID", `failed to generate bootstrap metadata: ${node.problems.join("; ")}`);
  }
  const names = node.metadata.PILOT_SAN;
  log.info(`Pilot SAN: [${Array.isArray(names) ? names.join(" ") : ""}]`);
  return { proxyConfig, addresses, dnsDomain, node, servedByOthers };
}

async function findSdsServer({ config, place, log }: PrepareInput): Promise<boolean> {
  const found = await findForeignServer(config.identity.socketFile, place, log);
  if (!found) log.info("Workload SDS socket not found. Starting Istio SDS Server");
  return found;
}

/**
 * The content of a file; undefined when there is none. Here as in the other steps of a start small files are not left to
 * another thread: on a busy machine each turn over one is a wait, and Envoy waits for all of them.
 */
export function readOptional(path: string, read = readTolerantly): string | undefined {
  try {
    return read(path);
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && (thrown.code === "ENOENT" || thrown.code === "ENOTDIR"))
      return undefined;
    throw new MeshError("FILE_UNREADABLE", `Cannot read ${path}`, { cause: thrown });
  }
}

/** As Go's reader of quoted values does, whatever is no UTF-8 becomes U+FFFD. */
function readTolerantly(path: string): string {
  return readFileSync(path, "utf8");
}

function readDownwardApi(path: string, log: Logger): Labels | undefined {
  let text: string | undefined;
  try {
    text = readOptional(path);
  } catch (thrown) {
    log.warn(`failed to read pod annotations or labels: ${errorText(thrown)}`);
  }
  if (text === undefined) return undefined;
  const { values, problem } = parseDownwardApi(text);
  if (problem === undefined) return values;
  log.warn(`${path} is ignored: ${problem}`);
  return undefined;
}

async function effectiveConfig(
  { flags, config, log, place }: PrepareInput,
  annotations: Labels | undefined,
): Promise<ProxyConfig> {
  const meshText = await failingAs(`failed to read mesh config file ${flags.meshConfig}`, async () =>
    readOptional(pathIn(place, flags.meshConfig), readUtf8),
  );
  const { config: proxyConfig, problems } = await readProxyConfig({
    meshFile: meshText === undefined ? undefined : { path: flags.meshConfig, text: meshText },
    environment: config.proxyConfig,
    annotations,
    concurrency: flags.concurrency,
    cpuLimit: config.cpuLimit,
    serviceCluster: flags.serviceCluster,
    terminationDrainSeconds: config.terminationDrainSeconds,
  });
  const texts = problems.map(({ source, field, message }) => `${source}: ${field} ${message}`.replace(":  ", ": "));
  if (proxyConfig === undefined) {
    const errors = texts.filter((_, index) => problems[index]?.severity === "error");
    throw new MeshError("PROXY_CONFIG_INVALID", `The proxy configuration cannot be used: ${errors.join("; ")}`);
  }
  for (const text of texts) log.warn(text);
  if (flags.concurrency > 0) log.warn(`legacy --concurrency=${flags.concurrency}: use concurrency of ProxyConfig`);
  const resolved = await withResolvedStatsd(proxyConfig, log);
  log.info("Effective config: ", {}, formatYaml(resolved));
  return withTemplate(resolved, flags);
}

/** `--templateFile` is what `proxyBootstrapTemplatePath` says, also to the control plane. */
function withTemplate(config: ProxyConfig, { templateFile }: ProxyFlags): ProxyConfig {
  if (templateFile === "" || (config.customConfigFile ?? "") !== "") return config;
  return { ...config, proxyBootstrapTemplatePath: templateFile };
}

/** Envoy sends statistics to an address, not to a name; of several to one of IPv4, where most of those who take them listen. */
async function withResolvedStatsd(config: ProxyConfig, log: Logger): Promise<ProxyConfig> {
  const { statsdUdpAddress, ...rest } = config;
  if (statsdUdpAddress === undefined) return config;
  const [, literal, name, digits] = /^(?:\[(.+)\]|([^:]+)):(\d+)$/.exec(statsdUdpAddress) ?? [];
  const host = literal ?? name;
  const port = Number(digits);
  try {
    if (host === undefined || port < 1 || port > 65_535)
      throw new Error(`must be host:port, not "${statsdUdpAddress}"`);
    const { address } = await lookup(host, { order: "ipv4first" });
    return { ...config, statsdUdpAddress: formatListenAddress({ host: address, port }) };
  } catch (thrown) {
    log.warn(`resolve StatsdUdpAddress failed: ${errorText(thrown)}; statistics are not sent to statsd`);
    return rest;
  }
}

function pilotSubjectAltName({ discoveryAddress }: ProxyConfig): string {
  const host = discoveryAddress.split(":")[0] ?? "";
  return host === "localhost" ? "istiod.istio-system.svc" : host;
}
