/** What a bootstrap template of the user is rendered with: the values that Istio's agent gives to its own, by its names. */
import { join } from "node:path";
import { Struct, TextMap, toValue, type Value, type ValueMap } from "@mizzen/go-template/value";
import { messageValue } from "#config/mesh/message-value.ts";
import type { ProxyConfig, RemoteService } from "#config/proxy-config/proxy-config.ts";
import { addressFamily } from "./addresses.ts";
import { LIGHTSTEP_TOKEN_FILE, maxConnections, nodeMetadata, runtimeFlags } from "./bootstrap.ts";
import { keepalive, socketAddress } from "./clusters.ts";
import type { BootstrapContext, BootstrapInput, Json } from "./input.ts";
import { FILE_SDS_SOCKET } from "./input.ts";
import { remoteTls } from "./remote-tls.ts";
import { discoversMetadata, statsOptions } from "./stats.ts";

type Params = Readonly<Record<string, Value>>;
type PodPort = { readonly name?: string; readonly containerPort?: number; readonly protocol?: string };

/** The value of `.` in a bootstrap template. Values that Istio leaves out when they are empty are left out here too. */
export function templateParams(input: BootstrapInput): ValueMap {
  const context: BootstrapContext = { ...input, family: addressFamily(input.addresses, input.dualStack) };
  const { node, proxyConfig } = context;
  return {
    nodeID: node.id,
    nodeType: node.id.split("~")[0] ?? "",
    cluster: node.cluster,
    ...unlessEmpty({ ...node.locality }),
    metadata: metadataStruct(context),
    meta_json_str: JSON.stringify(nodeMetadata(context)),
    config: configStruct(proxyConfig),
    runtime_flags: JSON.stringify(runtimeFlags(context)),
    global_downstream_max_connections: BigInt(maxConnections(context)),
    ...addressParams(context),
    ...controlPlaneParams(context),
    ...statsParams(context),
    ...tracingParams(context),
    ...remoteParams("envoy_metrics_service", proxyConfig.envoyMetricsService, context),
    ...remoteParams("envoy_accesslog_service", proxyConfig.envoyAccessLogService, context),
    ...platformParams(context),
  };
}

function addressParams(context: BootstrapContext): Params {
  const { family, envoyStatusPort, envoyPrometheusPort, statusPortProxyProtocol, proxyConfig } = context;
  const { additionalLocalhost, additionalWildcard } = family;
  return {
    localhost: family.localhost,
    wildcard: family.wildcard,
    dns_lookup_family: family.dnsLookupFamily,
    ...(additionalLocalhost === undefined
      ? {}
      : { additional_localhost: additionalLocalhost, additional_wildcard: additionalWildcard, dual_stack: true }),
    envoy_status_port: BigInt(envoyStatusPort),
    envoy_prometheus_port: BigInt(envoyPrometheusPort),
    ...(statusPortProxyProtocol ? { envoy_status_port_enable_proxy_protocol: true } : {}),
    metrics_localhost_access_only: proxyConfig.proxyMetadata?.METRICS_LOCALHOST_ACCESS_ONLY === "true",
  };
}

function controlPlaneParams(context: BootstrapContext): Params {
  const { proxyConfig, node, hostIp, deltaXds, outlierLogPath, logAsJson } = context;
  const names = node.metadata.PILOT_SAN;
  const matchers = Array.isArray(names) ? names.map((exact) => ({ exact })) : [];
  const loadStats = node.extraMetadata.LOAD_STATS_CONFIG_JSON;
  return {
    xds_type: deltaXds ? "DELTA_GRPC" : "GRPC",
    pilot_SAN: JSON.stringify(matchers),
    discovery_address: proxyConfig.discoveryAddress,
    discovery_host: proxyConfig.discoveryAddress.split(":")[0] ?? "",
    pilot_grpc_address: JSON.stringify(socketAddress(proxyConfig.discoveryAddress, hostIp)),
    xds_root_cert: context.xdsRootCert,
    workload_identity_socket_file: context.workloadIdentitySocketFile,
    log_json: logAsJson,
    ...unlessEmpty({
      outlier_log_path: outlierLogPath,
      custom_file_path: context.fileCredentials ? FILE_SDS_SOCKET : "",
      load_stats_config_json_str: typeof loadStats === "string" ? loadStats : "",
    }),
  };
}

function statsParams(context: BootstrapContext): Params {
  const { proxyConfig, hostIp } = context;
  const { prefixes, suffixes, regexps, extraTags, buckets, flushInterval, evictionInterval } = statsOptions(
    context,
    [],
  );
  const { statsdUdpAddress } = proxyConfig;
  return {
    metadata_discovery: discoversMetadata(context),
    inclusionPrefix: prefixes,
    inclusionSuffix: suffixes,
    inclusionRegexps: regexps,
    ...(extraTags.length === 0 ? {} : { extraStatTags: extraTags }),
    histogram_buckets: toValue(buckets),
    ...unlessEmpty({ stats_flush_interval: flushInterval ?? "", stats_eviction_interval: evictionInterval ?? "" }),
    ...(statsdUdpAddress === undefined ? {} : { statsd: JSON.stringify(socketAddress(statsdUdpAddress, hostIp)) }),
  };
}

function tracingParams({ proxyConfig, node, hostIp }: BootstrapContext): Params {
  const { zipkin, lightstep, datadog, tlsSettings } = proxyConfig.tracing ?? {};
  const at = (name: string, address: string | undefined): Params =>
    address === undefined ? {} : { [name]: JSON.stringify(socketAddress(address, hostIp)) };
  const tls = remoteTls(tlsSettings, { node, sni: "tracer", http2: lightstep !== undefined });
  return {
    ...at("zipkin", zipkin?.address),
    ...at("lightstep", lightstep?.address),
    ...(lightstep === undefined ? {} : { lightstepToken: join(proxyConfig.configPath, LIGHTSTEP_TOKEN_FILE) }),
    ...at("datadog", datadog?.address),
    ...(tls.transport_socket === undefined ? {} : { tracing_tls: JSON.stringify(tls.transport_socket) }),
  };
}

function remoteParams(name: string, service: RemoteService | undefined, context: BootstrapContext): Params {
  const compression: Params =
    name === "envoy_metrics_service"
      ? { envoy_metrics_stats_compression: context.proxyConfig.statsCompression ?? true }
      : {};
  if (service?.address === undefined) return compression;
  const { transport_socket: tls } = remoteTls(service.tlsSettings, { node: context.node, sni: name, http2: true });
  const { upstream_connection_options: kept } = keepalive(service.tcpKeepalive);
  const encoded = (key: string, value: Json | undefined): Params =>
    value === undefined ? {} : { [`${name}_${key}`]: JSON.stringify(value) };
  return {
    ...compression,
    ...encoded("address", socketAddress(service.address, context.hostIp)),
    ...encoded("tls", tls),
    ...encoded("tcp_keepalive", kept),
  };
}

function platformParams({ node }: BootstrapContext): Params {
  const { gcp_project: project, gcp_project_number: number } = node.platformMetadata;
  const port = Number(node.metadata.STS_PORT ?? 0);
  return {
    ...(number === undefined ? {} : { gcp_project_number: number }),
    ...(port > 0 ? { sts: true, sts_port: BigInt(port) } : {}),
    ...(port > 0 && project !== undefined ? { gcp_project_id: project } : {}),
  };
}

/** Go's names of the fields that templates ask for; those of the others follow from their keys. */
const METADATA_FIELDS: Readonly<Record<string, string>> = {
  NAME: "InstanceName",
  CLUSTER_ID: "ClusterID",
  MESH_ID: "MeshID",
  ISTIO_PROXY_SHA: "IstioProxySHA",
  INSTANCE_IPS: "InstanceIPs",
  PILOT_SAN: "PilotSubjectAltName",
  TLS_CLIENT_CERT_CHAIN: "TLSClientCertChain",
  TLS_CLIENT_KEY: "TLSClientKey",
  TLS_CLIENT_ROOT_CERT: "TLSClientRootCert",
  TLS_SERVER_CERT_CHAIN: "TLSServerCertChain",
  TLS_SERVER_KEY: "TLSServerKey",
  TLS_SERVER_ROOT_CERT: "TLSServerRootCert",
  DNS_CAPTURE: "DNSCapture",
  DNS_AUTO_ALLOCATE: "DNSAutoAllocate",
  ENABLE_HBONE: "EnableHBONE",
  HTTP_PROXY_PORT: "HTTPProxyPort",
  BASE: "CertBaseDir",
  DISABLE_HBONE_SEND: "DisableHBONESend",
  HTTP10: "HTTP10",
};
// biome-ignore format: a list of names
const TEXT_KEYS = [
  "APP_CONTAINERS", "AUTO_REGISTER_GROUP", "BASE", "CLOUDRUN_ADDR", "CLUSTER_ID", "ENVOY_PROMETHEUS_PORT",
  "ENVOY_STATUS_PORT", "GENERATOR", "HTTP10", "HTTP_PROXY_PORT", "IDLE_TIMEOUT", "INTERCEPTION_MODE", "ISTIO_PROXY_SHA",
  "ISTIO_REVISION", "ISTIO_VERSION", "MESH_ID", "NAME", "NAMESPACE", "NETWORK", "NODE_NAME", "OUTLIER_LOG_PATH", "OWNER",
  "PILOT_SAN", "SERVICE_ACCOUNT", "STS_PORT", "TLS_CLIENT_CERT_CHAIN", "TLS_CLIENT_KEY", "TLS_CLIENT_ROOT_CERT",
  "TLS_SERVER_CERT_CHAIN", "TLS_SERVER_KEY", "TLS_SERVER_ROOT_CERT", "UNPRIVILEGED_POD", "WORKLOAD_ENTRY",
  "WORKLOAD_IDENTITY_SOCKET_FILE", "WORKLOAD_NAME",
];
// biome-ignore format: a list of names
const FLAG_KEYS = [
  "DISABLE_HBONE_SEND", "DNS_AUTO_ALLOCATE", "DNS_CAPTURE", "ENABLE_HBONE", "ENVOY_SKIP_DEPRECATED_LOGS",
  "EXIT_ON_ZERO_ACTIVE_CONNECTIONS", "INBOUND_LISTENER_EXACT_BALANCE", "OUTBOUND_LISTENER_EXACT_BALANCE",
];
const LIST_KEYS = ["INSTANCE_IPS", "REQUESTED_NETWORK_VIEW"];
const MAP_KEYS = ["ANNOTATIONS", "LABELS", "PLATFORM_METADATA", "STATIC_LABELS"];

function metadataStruct({ node, proxyConfig, xdsRootCert }: BootstrapContext): Struct {
  const { metadata } = node;
  const fieldsOf = (keys: readonly string[], inGo: (value: unknown) => Value): Params =>
    Object.fromEntries(keys.map((key) => [goName(key), inGo(metadata[key])]));
  const fields: Params = {
    ...fieldsOf(TEXT_KEYS, textOrNumber),
    ...fieldsOf(FLAG_KEYS, (value) => value === "true"),
    ...fieldsOf(LIST_KEYS, (value) => (value === undefined ? [] : String(value).split(","))),
    ...fieldsOf(MAP_KEYS, (value) => new TextMap({ ...(value as Readonly<Record<string, string>> | undefined) })),
    PodPorts: podPorts(metadata.POD_PORTS),
    // A pointer: what it says is printed, but to `if` it is there.
    MetadataDiscovery: new Struct("*model.StringBool", {}, { text: String(metadata.METADATA_DISCOVERY) }),
    XDSRootCert: xdsRootCert,
    Raw: toValue(node.rawMetadata),
    ProxyConfig: configStruct(proxyConfig),
  };
  return new Struct("*model.BootstrapNodeMetadata", fields, { json: metadata });
}

function textOrNumber(value: unknown): Value {
  if (typeof value === "number") return BigInt(value);
  return value === undefined ? "" : toValue(value);
}

/** Of their JSON, which is how metadata holds them. */
function podPorts(json: unknown): Value {
  if (json === undefined) return [];
  const ports: readonly PodPort[] = JSON.parse(String(json));
  return ports.map((port) => {
    const { name = "", containerPort = 0, protocol = "" } = port;
    return new Struct(
      "model.PodPort",
      { Name: name, ContainerPort: BigInt(containerPort), Protocol: protocol },
      { json: port },
    );
  });
}

function goName(key: string): string {
  const camel = key.toLowerCase().replace(/(?:^|_)([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  return METADATA_FIELDS[key] ?? camel;
}

/** ProxyConfig as a struct of Go, which has the two fields that exclude each other in one. */
function configStruct(config: ProxyConfig): Struct {
  const { fields, traits } = messageValue("ProxyConfig", config);
  const { serviceCluster, tracingServiceName } = config;
  const clusterName =
    tracingServiceName === undefined
      ? new Struct("*v1alpha1.ProxyConfig_ServiceCluster", { ServiceCluster: serviceCluster ?? "" })
      : new Struct("*v1alpha1.ProxyConfig_TracingServiceName_", { TracingServiceName: tracingServiceName });
  return new Struct("*model.NodeMetaProxyConfig", { ...Object.fromEntries(fields), ClusterName: clusterName }, traits);
}

function unlessEmpty(values: Readonly<Record<string, string>>): Params {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
}
