/** Who this proxy is: the node that Envoy and gRPC clients show to the control plane. Pure. */
import type { ProxyConfig } from "#config/proxy-config.ts";
import type { Env } from "#lib/env-reader.ts";

export type ProxyType = "sidecar" | "router";
export type Labels = Readonly<Record<string, string>>;

export interface ProxyIdentity {
  readonly type: ProxyType;
  readonly podName: string;
  readonly podNamespace: string;
  /** `NAMESPACE.svc.cluster.local` */
  readonly dnsDomain: string;
  /** The address that identifies the instance first. */
  readonly addresses: readonly string[];
}

export interface NodeInput {
  /** `type~ip~id~domain`, see `nodeId`. */
  readonly id: string;
  readonly addresses: readonly string[];
  /** The whole environment: `ISTIO_META_*`, `ISTIO_METAJSON_*`, POD_NAME, POD_NAMESPACE and SERVICE_ACCOUNT are read. */
  readonly env: Env;
  readonly proxyConfig: ProxyConfig;
  /** Of the downward API; undefined where there is no file. */
  readonly podLabels?: Labels | undefined;
  readonly podAnnotations?: Labels | undefined;
  readonly pilotSubjectAltNames: readonly string[];
  readonly envoyStatusPort: number;
  readonly envoyPrometheusPort: number;
  readonly exitOnZeroActiveConnections: boolean;
  /** PEER_METADATA_DISCOVERY; undefined follows ISTIO_META_ENABLE_HBONE. */
  readonly metadataDiscovery?: boolean | undefined;
  readonly skipDeprecatedLogs: boolean;
  readonly workloadIdentitySocketFile: string;
  readonly outlierLogPath: string;
  readonly stsPort: number;
  /** Of Istio, for proxies that do not say it by ISTIO_META_ISTIO_VERSION. */
  readonly version: string;
}

export interface Locality {
  readonly region?: string;
  readonly zone?: string;
  readonly sub_zone?: string;
}

export interface ProxyNode {
  readonly id: string;
  /** Service cluster, the name under which this proxy's spans appear. */
  readonly cluster: string;
  readonly locality: Locality;
  /** Metadata that has a meaning to the control plane. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** What else the environment gives; Envoy gets it too, gRPC clients do not. */
  readonly extraMetadata: Readonly<Record<string, unknown>>;
  readonly labels: Labels;
  readonly annotations: Labels;
  readonly namespace: string;
  /** Values that could not be read. */
  readonly problems: readonly string[];
}

const META_PREFIX = "ISTIO_META_";
const META_JSON_PREFIX = "ISTIO_METAJSON_";
/** Set by ReplicaSets, different for each rollout: it identifies no workload. */
const TEMPLATE_HASH_LABEL = "pod-template-hash";
const LOCALITY_LABEL = "istio-locality";
const TOPOLOGY_LABEL = "topology.istio.io/locality";
const DEFAULT_SERVICE_CLUSTER = "istio-proxy";

/** Keys that the control plane knows, and that variables may set. */
// biome-ignore format: a list of names
const TEXT_KEYS: readonly string[] = [
  "OWNER", "APP_CONTAINERS", "ISTIO_PROXY_SHA", "ISTIO_VERSION", "ISTIO_REVISION", "NODE_NAME", "WORKLOAD_NAME",
  "INTERCEPTION_MODE", "HTTP_PROXY_PORT", "MESH_ID", "CLUSTER_ID", "NETWORK", "REQUESTED_NETWORK_VIEW", "POD_PORTS",
  "TLS_SERVER_CERT_CHAIN", "TLS_SERVER_KEY", "TLS_SERVER_ROOT_CERT", "TLS_CLIENT_CERT_CHAIN", "TLS_CLIENT_KEY",
  "TLS_CLIENT_ROOT_CERT", "BASE", "IDLE_TIMEOUT", "HTTP10", "GENERATOR", "AUTO_REGISTER_GROUP", "WORKLOAD_ENTRY",
  "UNPRIVILEGED_POD", "CLOUDRUN_ADDR",
];
// biome-ignore format: a list of names
const FLAG_KEYS: readonly string[] = [
  "DNS_CAPTURE", "DNS_AUTO_ALLOCATE", "ENABLE_HBONE", "DISABLE_HBONE_SEND", "INBOUND_LISTENER_EXACT_BALANCE",
  "OUTBOUND_LISTENER_EXACT_BALANCE",
];

/** `sidecar~10.0.0.1~httpbin-1.default~default.svc.cluster.local` */
export function nodeId({ type, podName, podNamespace, dnsDomain, addresses }: ProxyIdentity): string {
  return [type, addresses[0] ?? "", `${podName}.${podNamespace}`, dnsDomain].join("~");
}

export function proxyNode(input: NodeInput): ProxyNode {
  const { env, proxyConfig, podLabels, podAnnotations } = input;
  const problems: string[] = [];
  const given = givenMetadata(input, problems);
  const staticLabels = stringMap(env.ISTIO_METAJSON_LABELS);
  const { labels, locality } = withLocality(
    podLabels === undefined ? staticLabels : { ...staticLabels, ...withoutHash(podLabels) },
  );
  const annotations = podAnnotations ?? {};
  const namespace = env.POD_NAMESPACE ?? "";
  const metadata: Record<string, unknown> = {
    ...known(given, problems),
    ...fixedMetadata(input),
    PROXY_CONFIG: proxyConfig,
    ...unlessEmpty("NAME", env.POD_NAME),
    ...unlessEmpty("NAMESPACE", namespace),
    ...unlessEmpty("SERVICE_ACCOUNT", env.SERVICE_ACCOUNT),
    ...unlessEmpty("LABELS", labels),
    ...unlessEmpty("STATIC_LABELS", podLabels === undefined ? labels : staticLabels),
    ...unlessEmpty("ANNOTATIONS", annotations),
  };
  metadata.METADATA_DISCOVERY = String(input.metadataDiscovery ?? metadata.ENABLE_HBONE === "true");
  metadata.ISTIO_VERSION ??= input.version;
  return {
    id: input.id,
    cluster: serviceCluster(proxyConfig, { labels, namespace, workloadName: String(metadata.WORKLOAD_NAME ?? "") }),
    locality,
    metadata,
    extraMetadata: Object.fromEntries(Object.entries(given).filter(([key]) => !(key in metadata))),
    labels,
    annotations,
    namespace,
    problems,
  };
}

/** All that configuration and environment give, the environment last. The name of a JSON variable does not matter. */
function givenMetadata({ env, proxyConfig }: NodeInput, problems: string[]): Readonly<Record<string, unknown>> {
  const given: Record<string, unknown> = {};
  for (const [name, value] of [...Object.entries(proxyConfig.proxyMetadata ?? {}), ...Object.entries(env)]) {
    if (name.startsWith(META_PREFIX)) given[name.slice(META_PREFIX.length)] = value;
  }
  for (const [name, value] of Object.entries(env)) {
    if (name.startsWith(META_JSON_PREFIX)) Object.assign(given, jsonObject(name, value, problems));
  }
  return given;
}

function known(given: Readonly<Record<string, unknown>>, problems: string[]): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const key of TEXT_KEYS) {
    const value = given[key];
    if (typeof value === "string" && value !== "") result[key] = value;
    else if (value !== undefined && value !== "") problems.push(`${META_PREFIX}${key} must be a string`);
  }
  for (const key of FLAG_KEYS) {
    const value = given[key];
    if (isTrue(value)) result[key] = "true";
    else if (value !== undefined && !isFalse(value))
      problems.push(`${META_PREFIX}${key} must be true or false, not "${value}"`);
  }
  return result;
}

function fixedMetadata(input: NodeInput): Record<string, unknown> {
  return {
    ENVOY_STATUS_PORT: input.envoyStatusPort,
    ENVOY_PROMETHEUS_PORT: input.envoyPrometheusPort,
    ...unlessEmpty("INSTANCE_IPS", [...new Set(input.addresses)].join(",")),
    ...(input.pilotSubjectAltNames.length === 0 ? {} : { PILOT_SAN: input.pilotSubjectAltNames }),
    ...(input.exitOnZeroActiveConnections ? { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: "true" } : {}),
    ...(input.skipDeprecatedLogs ? { ENVOY_SKIP_DEPRECATED_LOGS: "true" } : {}),
    ...unlessEmpty("WORKLOAD_IDENTITY_SOCKET_FILE", input.workloadIdentitySocketFile),
    ...unlessEmpty("OUTLIER_LOG_PATH", input.outlierLogPath),
    ...(input.stsPort === 0 ? {} : { STS_PORT: String(input.stsPort) }),
  };
}

/** Labels cannot hold a `/`, so `region.zone.subzone` stands for `region/zone/subzone`. */
function withLocality(labels: Labels): { readonly labels: Labels; readonly locality: Locality } {
  const label = labels[TOPOLOGY_LABEL] ?? labels[LOCALITY_LABEL] ?? "";
  if (label === "") return { labels, locality: {} };
  const text = label.includes("/") ? label : label.replaceAll(".", "/");
  const [region, zone, subZone] = text.split("/");
  const locality = {
    ...unlessEmpty("region", region),
    ...unlessEmpty("zone", zone),
    ...unlessEmpty("sub_zone", subZone),
  };
  return { labels: { ...labels, [LOCALITY_LABEL]: text }, locality };
}

interface Workload {
  readonly labels: Labels;
  readonly namespace: string;
  readonly workloadName: string;
}

function serviceCluster({ serviceCluster, tracingServiceName }: ProxyConfig, workload: Workload): string {
  const { labels, namespace, workloadName } = workload;
  const canonical =
    labels["service.istio.io/canonical-name"] ??
    labels["app.kubernetes.io/name"] ??
    labels.app ??
    (workloadName || DEFAULT_SERVICE_CLUSTER);
  if (tracingServiceName === "CANONICAL_NAME_ONLY") return clusterOrDefault(canonical, workload);
  if (tracingServiceName === "CANONICAL_NAME_AND_NAMESPACE") {
    return namespace === "" ? clusterOrDefault(canonical, workload) : `${canonical}.${namespace}`;
  }
  return clusterOrDefault(serviceCluster ?? "", workload);
}

/** The name that was chosen, unless it is the one that everybody has. */
function clusterOrDefault(name: string, { labels, namespace, workloadName }: Workload): string {
  if (name !== "" && name !== DEFAULT_SERVICE_CLUSTER) return name;
  const base = labels.app ?? (workloadName || undefined);
  if (base !== undefined) return `${base}.${namespace}`;
  return namespace === "" ? DEFAULT_SERVICE_CLUSTER : `${DEFAULT_SERVICE_CLUSTER}.${namespace}`;
}

function withoutHash(labels: Labels): Labels {
  return Object.fromEntries(Object.entries(labels).filter(([name]) => name !== TEMPLATE_HASH_LABEL));
}

/** What is wrong with it is told where all JSON variables are read. */
function stringMap(json: string | undefined): Labels {
  const entries = Object.entries(jsonObject("ISTIO_METAJSON_LABELS", json, []));
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}

function jsonObject(name: string, json: string | undefined, problems: string[]): Readonly<Record<string, unknown>> {
  if (json === undefined || json === "") return {};
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // told below, as is JSON of another kind
  }
  problems.push(`${name} must be a JSON object, not ${json}`);
  return {};
}

function unlessEmpty<T extends string, V extends string | Labels>(
  key: T,
  value: V | undefined,
): { readonly [K in T]?: V } {
  const empty = value === undefined || (typeof value === "string" ? value === "" : Object.keys(value).length === 0);
  return (empty ? {} : { [key]: value }) as { readonly [K in T]?: V };
}

/** Go's ParseBool. */
function isTrue(value: unknown): boolean {
  return typeof value === "string" && ["1", "t", "T", "TRUE", "true", "True"].includes(value);
}

function isFalse(value: unknown): boolean {
  return typeof value === "string" && ["0", "f", "F", "FALSE", "false", "False"].includes(value);
}
