/** What the agent's environment asks for. Its variables are rows of `agent-environment.ts`; here they get their places. */
import type { Env } from "#lib/env/env-table.ts";
import { type EnvValues, readEnvironment } from "#lib/env/env-table.ts";
import type { ProxyEnvironment } from "#lib/net/environment-proxy.ts";
import { isBinaryHeader, isHeaderValue } from "#lib/text/header-value.ts";
import { AGENT_ENVIRONMENT } from "./agent-environment.ts";
import type { PlatformConfig } from "./platform/platform.ts";
import { type IdentityConfig, identityConfig } from "./sds/identity-config.ts";
import { type XdsConfig, xdsConfig } from "./xds-proxy/xds-config.ts";

export interface AgentConfig {
  readonly xds: XdsConfig;
  readonly instanceIp: string;
  readonly podName: string;
  readonly podNamespace: string;
  readonly serviceAccount: string;
  readonly hostIp: string;
  readonly clusterId: string;
  readonly proxyConfig: string;
  readonly cpuLimit: number;
  readonly terminationDrainSeconds: number | undefined;
  readonly envoy: EnvoyConfig;
  readonly dns: DnsConfig;
  readonly identity: IdentityConfig;
  readonly status: StatusConfig;
  readonly platform: PlatformConfig;
  /** XDS_ROOT_CA: `SYSTEM` or a file. */
  readonly xdsRootCa: string;
  /** XDS_HEADER_*: sent with each stream to the control plane. */
  readonly xdsHeaders: Readonly<Record<string, string>>;
  /** ISTIOD_SAN */
  readonly istiodSan: string;
  /** HTTPS_PROXY, HTTP_PROXY and NO_PROXY. */
  readonly proxies: ProxyEnvironment;
  /** GRPC_XDS_BOOTSTRAP: where to write the bootstrap for gRPC clients; empty to write none. */
  readonly grpcBootstrapPath: string;
}

export interface EnvoyConfig {
  readonly statusPort: number;
  readonly prometheusPort: number;
  readonly statusPortProxyProtocol: boolean;
  readonly skipDeprecatedLogs: boolean;
  readonly metadataDiscovery: boolean | undefined;
  readonly exitOnZeroActiveConnections: boolean;
  readonly minimumDrainMs: number;
  readonly coreDump: boolean;
  readonly dualStack: boolean;
  readonly fips: boolean;
  /** ISTIO_DELTA_XDS */
  readonly deltaXds: boolean;
  readonly stripFragment: boolean;
  /** DISABLE_ENVOY: the workload speaks xDS itself. */
  readonly disabled: boolean;
  /** ENVOY_HOT_RESTART: a changed program or bootstrap takes over from the running one. */
  readonly hotRestart: boolean;
  /** ISTIO_BOOTSTRAP_OVERRIDE: a file laid over the bootstrap. */
  readonly bootstrapOverrideFile: string;
  /** ISTIO_BOOTSTRAP: a template in place of the bootstrap. */
  readonly bootstrapTemplate: string;
}

export interface DnsConfig {
  /** ISTIO_META_DNS_CAPTURE: for sidecars. */
  readonly capture: boolean;
  /** ISTIO_META_ENABLE_DNS_SERVER: for gateways. */
  readonly atGateway: boolean;
  readonly address: string;
  readonly forwardParallel: boolean;
  /** DNS_FORWARD_CACHE */
  readonly forwardCache: boolean;
}

export interface StatusConfig {
  readonly appProbers: string;
  /** Undefined when not set at all: an empty one is wrong. */
  readonly prometheusAnnotations: string | undefined;
  readonly legacyLocalhostProbes: boolean;
  /** ISTIO_ENABLE_HTTP2_PROBING */
  readonly http2Probes: boolean;
  /** ENABLE_PROBE_KEEPALIVE_CONNECTIONS */
  readonly keptProbeConnections: boolean;
  /** METRICS_LOCALHOST_ACCESS_ONLY */
  readonly metricsOnLoopbackOnly: boolean;
}

/** What Istio's agent does when these are set, and this one does not yet. */
const WITHOUT_EFFECT: readonly string[] = ["XDS_AUTH_PROVIDER"];

export interface ParsedAgentConfig {
  readonly config: AgentConfig;
  /** All that makes it unusable. */
  readonly problems: readonly string[];
  /** What was asked for and will not happen. */
  readonly warnings: readonly string[];
}

type Values = EnvValues<typeof AGENT_ENVIRONMENT>;

export function parseAgentConfig(env: Env): ParsedAgentConfig {
  const { values, problems, warnings } = readEnvironment(AGENT_ENVIRONMENT, env);
  const config: AgentConfig = {
    xds: xdsConfig(values),
    instanceIp: values.INSTANCE_IP,
    podName: values.POD_NAME,
    podNamespace: values.POD_NAMESPACE,
    serviceAccount: values.SERVICE_ACCOUNT,
    hostIp: values.HOST_IP,
    clusterId: values.ISTIO_META_CLUSTER_ID,
    proxyConfig: values.PROXY_CONFIG,
    cpuLimit: values.ISTIO_CPU_LIMIT,
    terminationDrainSeconds: values.TERMINATION_DRAIN_DURATION_SECONDS,
    envoy: envoyConfig(values),
    dns: {
      capture: values.ISTIO_META_DNS_CAPTURE,
      atGateway: values.ISTIO_META_ENABLE_DNS_SERVER,
      address: values.DNS_PROXY_ADDR,
      forwardParallel: values.DNS_FORWARD_PARALLEL,
      forwardCache: values.DNS_FORWARD_CACHE,
    },
    identity: identityConfig(values),
    status: {
      appProbers: values.ISTIO_KUBE_APP_PROBERS,
      prometheusAnnotations: values.ISTIO_PROMETHEUS_ANNOTATIONS,
      legacyLocalhostProbes: values.REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION,
      http2Probes: values.ISTIO_ENABLE_HTTP2_PROBING,
      keptProbeConnections: values.ENABLE_PROBE_KEEPALIVE_CONNECTIONS,
      metricsOnLoopbackOnly: values.METRICS_LOCALHOST_ACCESS_ONLY,
    },
    platform: platformConfig(values),
    xdsRootCa: values.XDS_ROOT_CA,
    xdsHeaders: values.XDS_HEADER_,
    istiodSan: values.ISTIOD_SAN,
    proxies: proxyEnvironment(values),
    grpcBootstrapPath: values.GRPC_XDS_BOOTSTRAP,
  };
  const asked = WITHOUT_EFFECT.filter((name) => !["", "false", "JWT"].includes(env[name] ?? ""));
  const wrongHeaders = [
    ...headerProblems("XDS_HEADER_", values.XDS_HEADER_),
    ...headerProblems("CA_HEADER_", values.CA_HEADER_),
    ...headerProblems("ISTIO_META_", { CLUSTER_ID: values.ISTIO_META_CLUSTER_ID }),
  ];
  return {
    config,
    problems: [...problems, ...wrongHeaders],
    warnings: [...warnings, ...asked.map((name) => `${name} is set and has no effect yet`)],
  };
}

/** What gRPC cannot send: no call would get through. Values may be secrets, so they are not shown. */
function headerProblems(prefix: string, headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    if (!/^[\w.-]+$/.test(name)) return [`${prefix}${name}: must end with the name of a header`];
    return isBinaryHeader(name) || isHeaderValue(value) ? [] : [`${prefix}${name}: must be printable ASCII`];
  });
}

function proxyEnvironment(values: Values): ProxyEnvironment {
  const { HTTPS_PROXY, https_proxy, HTTP_PROXY, http_proxy, NO_PROXY, no_proxy } = values;
  return { HTTPS_PROXY, https_proxy, HTTP_PROXY, http_proxy, NO_PROXY, no_proxy };
}

function envoyConfig(values: Values): EnvoyConfig {
  return {
    statusPort: values.ENVOY_STATUS_PORT,
    prometheusPort: values.ENVOY_PROMETHEUS_PORT,
    statusPortProxyProtocol: values.ENVOY_STATUS_PORT_ENABLE_PROXY_PROTOCOL,
    skipDeprecatedLogs: values.ENVOY_SKIP_DEPRECATED_LOGS,
    metadataDiscovery: values.PEER_METADATA_DISCOVERY,
    exitOnZeroActiveConnections: values.EXIT_ON_ZERO_ACTIVE_CONNECTIONS,
    minimumDrainMs: values.MINIMUM_DRAIN_DURATION,
    coreDump: values.ISTIO_ENVOY_ENABLE_CORE_DUMP,
    dualStack: values.ISTIO_DUAL_STACK,
    fips: values.COMPLIANCE_POLICY === "fips-140-2",
    deltaXds: values.ISTIO_DELTA_XDS,
    stripFragment: values.HTTP_STRIP_FRAGMENT_FROM_PATH_UNSAFE_IF_DISABLED,
    disabled: values.DISABLE_ENVOY,
    hotRestart: values.ENVOY_HOT_RESTART,
    bootstrapOverrideFile: values.ISTIO_BOOTSTRAP_OVERRIDE,
    bootstrapTemplate: values.ISTIO_BOOTSTRAP,
  };
}

function platformConfig(values: Values): PlatformConfig {
  return {
    cloud: values.CLOUD_PLATFORM,
    gcpMetadata: values.GCP_METADATA,
    gcpZone: values.GCP_ZONE,
    gcpQuotaProject: values.GCP_QUOTA_PROJECT,
    gcpHost: values.GCE_METADATA_HOST,
    gcpComputeUrl: values.GCP_COMPUTE_URL,
    awsUrl: values.AWS_EC2_METADATA_SERVICE_ENDPOINT,
    azureUrl: values.AZURE_METADATA_HOST,
    kubernetes: values.KUBERNETES_SERVICE_HOST !== "",
  };
}
