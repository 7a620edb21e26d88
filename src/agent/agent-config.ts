/** All that the agent reads from its environment, under Istio's names. */
import { type Env, EnvReader } from "#lib/env-reader.ts";
import type { RotationOptions } from "./sds/certificate.ts";
import type { KeyOptions } from "./sds/key.ts";

export interface AgentConfig {
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
  /** XDS_ROOT_CA: `SYSTEM` or a file. */
  readonly xdsRootCa: string;
  /** XDS_HEADER_*: sent with each stream to the control plane. */
  readonly xdsHeaders: Readonly<Record<string, string>>;
  /** ISTIOD_SAN */
  readonly istiodSan: string;
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
  readonly stripFragment: boolean;
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
}

export interface IdentityConfig {
  readonly trustDomain: string;
  /** CA_ADDR; empty for the discovery address. */
  readonly caAddress: string;
  /** CA_ROOT_CA: `SYSTEM` or a file. */
  readonly caRootCa: string;
  readonly caHeaders: Readonly<Record<string, string>>;
  /** PILOT_CERT_PROVIDER */
  readonly pilotCertProvider: string;
  readonly certSigner: string;
  readonly ttlSeconds: number;
  readonly rotation: RotationOptions;
  readonly key: KeyOptions;
  /** OUTPUT_CERTS: a folder that gets the certificate in files. */
  readonly outputFolder: string;
  /** WORKLOAD_IDENTITY_SOCKET_FILE: another name means a foreign SDS server. */
  readonly socketFile: string;
}

export interface StatusConfig {
  readonly appProbers: string;
  /** Undefined when not set at all: an empty one is wrong. */
  readonly prometheusAnnotations: string | undefined;
  readonly legacyLocalhostProbes: boolean;
}

/** What Istio's agent does when these are set, and this one does not yet. */
const WITHOUT_EFFECT: readonly string[] = [
  "CREDENTIAL_FETCHER_TYPE",
  "DISABLE_ENVOY",
  "FILE_MOUNTED_CERTS",
  "PROV_CERT",
  "PROXY_CONFIG_XDS_AGENT",
  "XDS_AUTH_PROVIDER",
];

export interface ParsedAgentConfig {
  readonly config: AgentConfig;
  /** All that makes it unusable. */
  readonly problems: readonly string[];
  /** What was asked for and will not happen. */
  readonly warnings: readonly string[];
}

export function parseAgentConfig(env: Env): ParsedAgentConfig {
  const read = new EnvReader(env);
  const config: AgentConfig = {
    instanceIp: read.string("INSTANCE_IP"),
    podName: read.string("POD_NAME"),
    podNamespace: read.string("POD_NAMESPACE"),
    serviceAccount: read.string("SERVICE_ACCOUNT"),
    hostIp: read.string("HOST_IP"),
    clusterId: read.string("ISTIO_META_CLUSTER_ID"),
    proxyConfig: read.string("PROXY_CONFIG"),
    cpuLimit: read.integer("ISTIO_CPU_LIMIT", 0),
    terminationDrainSeconds: read.optionalInteger("TERMINATION_DRAIN_DURATION_SECONDS"),
    envoy: envoyConfig(read),
    dns: {
      capture: read.boolean("ISTIO_META_DNS_CAPTURE", false),
      atGateway: read.boolean("ISTIO_META_ENABLE_DNS_SERVER", false),
      address: read.string("DNS_PROXY_ADDR", "localhost:15053"),
      forwardParallel: read.boolean("DNS_FORWARD_PARALLEL", false),
    },
    identity: identityConfig(read),
    status: {
      appProbers: read.string("ISTIO_KUBE_APP_PROBERS"),
      prometheusAnnotations: env.ISTIO_PROMETHEUS_ANNOTATIONS,
      legacyLocalhostProbes: read.boolean("REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION", false),
    },
    xdsRootCa: read.string("XDS_ROOT_CA"),
    xdsHeaders: read.prefixed("XDS_HEADER_"),
    istiodSan: read.string("ISTIOD_SAN"),
    grpcBootstrapPath: read.string("GRPC_XDS_BOOTSTRAP", "./etc/istio/proxy/grpc-bootstrap.json"),
  };
  const asked = WITHOUT_EFFECT.filter((name) => !["", "false", "JWT"].includes(read.string(name)));
  return { config, problems: read.problems, warnings: asked.map((name) => `${name} is set and has no effect yet`) };
}

function envoyConfig(read: EnvReader): EnvoyConfig {
  return {
    statusPort: read.port("ENVOY_STATUS_PORT", 15021),
    prometheusPort: read.port("ENVOY_PROMETHEUS_PORT", 15090),
    statusPortProxyProtocol: read.boolean("ENVOY_STATUS_PORT_ENABLE_PROXY_PROTOCOL", false),
    skipDeprecatedLogs: read.boolean("ENVOY_SKIP_DEPRECATED_LOGS", true),
    metadataDiscovery: read.optionalBoolean("PEER_METADATA_DISCOVERY"),
    exitOnZeroActiveConnections: read.boolean("EXIT_ON_ZERO_ACTIVE_CONNECTIONS", false),
    minimumDrainMs: read.durationMs("MINIMUM_DRAIN_DURATION", 5_000),
    coreDump: read.boolean("ISTIO_ENVOY_ENABLE_CORE_DUMP", false),
    dualStack: read.boolean("ISTIO_DUAL_STACK", false),
    fips: read.string("COMPLIANCE_POLICY") === "fips-140-2",
    stripFragment: read.boolean("HTTP_STRIP_FRAGMENT_FROM_PATH_UNSAFE_IF_DISABLED", true),
    bootstrapOverrideFile: read.string("ISTIO_BOOTSTRAP_OVERRIDE"),
    bootstrapTemplate: read.string("ISTIO_BOOTSTRAP"),
  };
}

function identityConfig(read: EnvReader): IdentityConfig {
  const ecdsa = read.choice("ECC_SIGNATURE_ALGORITHM", "", ["", "ECDSA"]) === "ECDSA";
  const curve = read.choice("ECC_CURVE", "P256", ["P256", "P384"]) === "P384" ? "P-384" : "P-256";
  return {
    trustDomain: read.string("TRUST_DOMAIN", "cluster.local"),
    caAddress: read.string("CA_ADDR"),
    caRootCa: read.string("CA_ROOT_CA"),
    caHeaders: read.prefixed("CA_HEADER_"),
    pilotCertProvider: read.string("PILOT_CERT_PROVIDER", "istiod"),
    certSigner: read.string("ISTIO_META_CERT_SIGNER"),
    ttlSeconds: Math.floor(read.durationMs("SECRET_TTL", 86_400_000) / 1000),
    rotation: {
      gracePeriodRatio: read.ratio("SECRET_GRACE_PERIOD_RATIO", 0.5),
      gracePeriodRatioJitter: read.ratio("SECRET_GRACE_PERIOD_RATIO_JITTER", 0.01),
    },
    key: {
      curve: ecdsa ? curve : undefined,
      rsaBits: read.integer("WORKLOAD_RSA_KEY_SIZE", 2048),
      pkcs8: read.boolean("PKCS8_KEY", false),
    },
    outputFolder: read.string("OUTPUT_CERTS"),
    socketFile: read.string("WORKLOAD_IDENTITY_SOCKET_FILE", "socket"),
  };
}
