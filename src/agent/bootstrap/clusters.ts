/** Static clusters: what Envoy must reach before and beside the control plane. */
import { durationMs, type RemoteService } from "#config/proxy-config/proxy-config.ts";
import { type BootstrapContext, FILE_SDS_SOCKET, type Json } from "./input.ts";
import { remoteTls } from "./remote-tls.ts";

export const WORKLOAD_SOCKET_FOLDER = "./var/run/secrets/workload-spiffe-uds";

type Fields = { readonly [key: string]: Json };

const HTTP2: Fields = {
  typed_extension_protocol_options: {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
      "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
      explicit_http_config: { http2_protocol_options: {} },
    },
  },
};
/** In effect no limit. */
const MANY = { max_connections: 100000, max_pending_requests: 100000, max_requests: 100000 };

export function staticClusters(context: BootstrapContext): Json[] {
  const { proxyConfig, family, fileCredentials = false, workloadIdentitySocketFile } = context;
  const { proxyAdminPort, statusPort = 0, configPath } = proxyConfig;
  const tcp = (port: number): Json => ({
    socket_address: { protocol: "TCP", address: family.localhost, port_value: port },
  });
  const local = { type: "STATIC", connect_timeout: "0.250s" };
  const overSocket = { type: "STATIC", connect_timeout: "1s", ...HTTP2 };
  return [
    cluster("prometheus_stats", tcp(proxyAdminPort), local),
    cluster("agent", tcp(statusPort), local),
    cluster("sds-grpc", pipe(`${WORKLOAD_SOCKET_FOLDER}/${workloadIdentitySocketFile}`), overSocket),
    ...(fileCredentials ? [cluster("sds-files-grpc", pipe(FILE_SDS_SOCKET), overSocket)] : []),
    cluster("xds-grpc", pipe(`${configPath}/XDS`), {
      ...overSocket,
      circuit_breakers: {
        thresholds: [
          { priority: "DEFAULT", ...MANY },
          { priority: "HIGH", ...MANY },
        ],
      },
      upstream_connection_options: { tcp_keepalive: { keepalive_time: 300 } },
      max_requests_per_connection: 1,
    }),
    ...tracingClusters(context),
    ...remoteCluster("envoy_metrics_service", proxyConfig.envoyMetricsService, context),
    ...remoteCluster("envoy_accesslog_service", proxyConfig.envoyAccessLogService, context),
  ];
}

/** `host:port` as Envoy writes it; `$(HOST_IP)` stands for the address of the machine. */
export function socketAddress(hostPort: string, hostIp: string): Json {
  const colon = hostPort.lastIndexOf(":");
  const host = hostPort.slice(0, colon).replace(/^\[(.*)\]$/, "$1");
  return {
    address: host === "$(HOST_IP)" && hostIp !== "" ? hostIp : host,
    port_value: Number(hostPort.slice(colon + 1)),
  };
}

function tracingClusters({ proxyConfig, family, node, hostIp }: BootstrapContext): Json[] {
  const { zipkin, lightstep, datadog, tlsSettings } = proxyConfig.tracing ?? {};
  const byDns = {
    ...strictDns(family),
    ...remoteTls(tlsSettings, { node, sni: "tracer", http2: lightstep !== undefined }),
  };
  const at = (address: string): Json => ({ socket_address: socketAddress(address, hostIp) });
  if (zipkin?.address !== undefined)
    return [cluster("zipkin", at(zipkin.address), { ...byDns, dns_refresh_rate: "30s" })];
  if (lightstep?.address !== undefined) return [cluster("lightstep", at(lightstep.address), { ...byDns, ...HTTP2 })];
  if (datadog?.address !== undefined) return [cluster("datadog_agent", at(datadog.address), byDns)];
  return [];
}

function remoteCluster(name: string, service: RemoteService | undefined, context: BootstrapContext): Json[] {
  if (service?.address === undefined) return [];
  const options = {
    ...strictDns(context.family),
    ...HTTP2,
    ...remoteTls(service.tlsSettings, { node: context.node, sni: name, http2: true }),
    ...keepalive(service.tcpKeepalive),
  };
  return [cluster(name, { socket_address: socketAddress(service.address, context.hostIp) }, options)];
}

function strictDns(family: BootstrapContext["family"]): Fields {
  return {
    type: "STRICT_DNS",
    respect_dns_ttl: true,
    dns_lookup_family: family.dnsLookupFamily,
    connect_timeout: "1s",
  };
}

/** Signs of life on connections to a remote service. */
export function keepalive(settings: RemoteService["tcpKeepalive"]): Fields {
  if (settings === undefined) return {};
  const seconds = (duration: string | undefined) => Math.floor(durationMs(duration) / 1000);
  const { probes = 0, time, interval } = settings;
  const numbers = { keepalive_probes: probes, keepalive_time: seconds(time), keepalive_interval: seconds(interval) };
  // Istio's agent writes these numbers as messages, which Envoy reads as well.
  const given = Object.entries(numbers).flatMap(([name, value]) => (value > 0 ? [[name, { value }] as const] : []));
  return { upstream_connection_options: { tcp_keepalive: Object.fromEntries(given) } };
}

/** The `;` ends the name in statistics, so that names with dots stay one tag. */
function cluster(name: string, address: Json, options: Fields): Json {
  return {
    name,
    alt_stat_name: `${name};`,
    ...options,
    lb_policy: "ROUND_ROBIN",
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
  };
}

function pipe(path: string): Json {
  return { pipe: { path } };
}
