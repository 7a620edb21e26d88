/** Who this proxy is: the node that Envoy and gRPC clients show to the control plane. Pure. */
import type { ProxyConfig } from "#config/proxy-config/proxy-config.ts";
import type { Env } from "#lib/env/env-table.ts";
import { givenMetadata, type Metadata, staticLabels } from "./node-metadata.ts";
import type { PlatformFacts } from "./platform/platform.ts";

export type ProxyType = "sidecar" | "router";
export type Labels = Readonly<Record<string, string>>;

export interface ProxyIdentity {
  readonly type: ProxyType;
  /** `POD.NAMESPACE` */
  readonly name: string;
  /** `NAMESPACE.svc.cluster.local` */
  readonly dnsDomain: string;
  /** The address that identifies the instance first. */
  readonly addresses: readonly string[];
}

export interface NodeInput {
  /** `type~ip~name~domain`, see `nodeId`. */
  readonly id: string;
  readonly addresses: readonly string[];
  /** The whole environment: `ISTIO_META_*`, `ISTIO_METAJSON_*`, POD_NAME, POD_NAMESPACE and SERVICE_ACCOUNT are read. */
  readonly env: Env;
  readonly proxyConfig: ProxyConfig;
  /** Of the downward API; undefined where there is no file. */
  readonly podLabels?: Labels | undefined;
  readonly podAnnotations?: Labels | undefined;
  /** What the cloud knows of the machine. */
  readonly platform?: PlatformFacts;
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
  /** An SDS server for credentials of gateways is on its socket. */
  readonly credentialSocket?: boolean;
  /** Certificates from files come over a socket of their own, since the workload's come from a foreign server. */
  readonly fileCredentials?: boolean;
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
  readonly metadata: Metadata;
  /** What else the environment gives; Envoy gets it too, gRPC clients do not. */
  readonly extraMetadata: Metadata;
  /** All that the environment gives, as it is given. */
  readonly rawMetadata: Metadata;
  readonly labels: Labels;
  readonly annotations: Labels;
  readonly platformMetadata: Labels;
  readonly namespace: string;
  /** Values that a node cannot have. */
  readonly problems: readonly string[];
  /** Variables that could not be read and are ignored. */
  readonly warnings: readonly string[];
}

/** Set by ReplicaSets, different for each rollout: it identifies no workload. */
const TEMPLATE_HASH_LABEL = "pod-template-hash";
const LOCALITY_LABEL = "istio-locality";
const TOPOLOGY_LABEL = "topology.istio.io/locality";
const DEFAULT_SERVICE_CLUSTER = "istio-proxy";

/** `sidecar~10.0.0.1~httpbin-1.default~default.svc.cluster.local` */
export function nodeId({ type, name, dnsDomain, addresses }: ProxyIdentity): string {
  return [type, addresses[0] ?? "", name, dnsDomain].join("~");
}

export function proxyNode(input: NodeInput): ProxyNode {
  const { env, proxyConfig, platform } = input;
  const { raw, known, problems, warnings } = givenMetadata(proxyConfig.proxyMetadata ?? {}, env);
  const { labels, fixedLabels, locality } = labelsOf(input, known);
  const annotations: Labels = { ...stringMap(known.ANNOTATIONS), ...input.podAnnotations };
  const platformMetadata =
    Object.keys(platform?.metadata ?? {}).length > 0 ? platform?.metadata : stringMap(known.PLATFORM_METADATA);
  const namespace = env.POD_NAMESPACE ?? text(known.NAMESPACE);
  const metadata: Record<string, unknown> = {
    ...withoutOwn(known),
    ...fixedMetadata(input),
    PROXY_CONFIG: proxyConfig,
    ...unlessEmpty("NAME", env.POD_NAME ?? text(known.NAME)),
    ...unlessEmpty("NAMESPACE", namespace),
    ...unlessEmpty("SERVICE_ACCOUNT", env.SERVICE_ACCOUNT ?? text(known.SERVICE_ACCOUNT)),
    ...unlessEmpty("LABELS", labels),
    ...unlessEmpty("STATIC_LABELS", fixedLabels),
    ...unlessEmpty("ANNOTATIONS", annotations),
    ...unlessEmpty("PLATFORM_METADATA", platformMetadata),
  };
  metadata.METADATA_DISCOVERY = String(input.metadataDiscovery ?? metadata.ENABLE_HBONE === "true");
  metadata.ISTIO_VERSION ??= input.version;
  const rawMetadata = { ...raw, ...sockets(input) };
  return {
    id: input.id,
    cluster: serviceCluster(proxyConfig, { labels, namespace, workloadName: text(metadata.WORKLOAD_NAME) }),
    locality,
    metadata,
    extraMetadata: Object.fromEntries(Object.entries(rawMetadata).filter(([key]) => !Object.hasOwn(metadata, key))),
    rawMetadata,
    labels,
    annotations,
    platformMetadata: platformMetadata ?? {},
    namespace,
    problems,
    warnings,
  };
}

function fixedMetadata(input: NodeInput): Metadata {
  return {
    ...(input.envoyStatusPort === 0 ? {} : { ENVOY_STATUS_PORT: input.envoyStatusPort }),
    ...(input.envoyPrometheusPort === 0 ? {} : { ENVOY_PROMETHEUS_PORT: input.envoyPrometheusPort }),
    ...unlessEmpty("INSTANCE_IPS", [...new Set(input.addresses)].join(",")),
    ...(input.pilotSubjectAltNames.length === 0 ? {} : { PILOT_SAN: input.pilotSubjectAltNames }),
    ...(input.exitOnZeroActiveConnections ? { EXIT_ON_ZERO_ACTIVE_CONNECTIONS: "true" } : {}),
    ...(input.skipDeprecatedLogs ? { ENVOY_SKIP_DEPRECATED_LOGS: "true" } : {}),
    ...unlessEmpty("WORKLOAD_IDENTITY_SOCKET_FILE", input.workloadIdentitySocketFile),
    ...unlessEmpty("OUTLIER_LOG_PATH", input.outlierLogPath),
    ...(input.stsPort === 0 ? {} : { STS_PORT: String(input.stsPort) }),
  };
}

/** Where the control plane may tell Envoy to find secrets. */
function sockets({ credentialSocket = false, fileCredentials = false }: NodeInput): Labels {
  return {
    ...(credentialSocket ? { credential: "true" } : {}),
    ...(fileCredentials ? { "file-credential": "true" } : {}),
  };
}

interface NodeLabels {
  /** Of the workload: those of its pod before those that the environment gives. */
  readonly labels: Labels;
  readonly fixedLabels: Labels;
  readonly locality: Locality;
}

function labelsOf({ env, podLabels, platform }: NodeInput, known: Metadata): NodeLabels {
  const ofEnvironment = staticLabels(env.ISTIO_METAJSON_LABELS);
  const isGiven = Object.keys(ofEnvironment).length > 0;
  const ofInstance = { ...(isGiven ? ofEnvironment : stringMap(known.STATIC_LABELS)), ...platform?.labels };
  const withoutPod = isGiven ? ofInstance : stringMap(known.LABELS);
  const own = podLabels === undefined ? withoutPod : { ...ofInstance, ...withoutHash(podLabels) };
  const { labels, locality } = withLocality(own, platform?.locality ?? {});
  return { labels, fixedLabels: podLabels === undefined && isGiven ? labels : ofInstance, locality };
}

/** Labels cannot hold a `/`, so `region.zone.subzone` stands for `region/zone/subzone`. */
function withLocality(labels: Labels, ofPlatform: Locality): { readonly labels: Labels; readonly locality: Locality } {
  const label = labels[TOPOLOGY_LABEL] ?? labels[LOCALITY_LABEL] ?? "";
  if (label === "") return { labels, locality: ofPlatform };
  const path = label.includes("/") ? label : label.replaceAll(".", "/");
  const [region, zone, subZone] = path.split("/");
  const locality = {
    ...unlessEmpty("region", region),
    ...unlessEmpty("zone", zone),
    ...unlessEmpty("sub_zone", subZone),
  };
  return { labels: { ...labels, [LOCALITY_LABEL]: path }, locality };
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

/** What the metadata takes over as it is: neither maps nor what a pod has variables of its own for. */
function withoutOwn(known: Metadata): Metadata {
  const { NAME, NAMESPACE, SERVICE_ACCOUNT, ...rest } = known;
  return Object.fromEntries(Object.entries(rest).filter(([, value]) => typeof value === "string"));
}

function stringMap(value: unknown): Labels {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function unlessEmpty<T extends string, V extends string | Labels>(
  key: T,
  value: V | undefined,
): { readonly [K in T]?: V } {
  const empty = value === undefined || (typeof value === "string" ? value === "" : Object.keys(value).length === 0);
  return (empty ? {} : { [key]: value }) as { readonly [K in T]?: V };
}
