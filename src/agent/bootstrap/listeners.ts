/** Static listeners: 15090 gives statistics, 15021 passes readiness probes on to the agent. */
import type { BootstrapContext, Json } from "./input.ts";

type Fields = { readonly [key: string]: Json };

const EXTENSION = "type.googleapis.com/envoy.extensions";
const COMPRESSED_TYPES = [
  "text/plain",
  "application/vnd.google.protobuf",
  "application/openmetrics-text",
  "application/openmetrics-protobuf",
];
const ROUTER: Json = {
  name: "envoy.filters.http.router",
  typed_config: { "@type": `${EXTENSION}.filters.http.router.v3.Router` },
};

export function staticListeners(context: BootstrapContext): Json[] {
  return [statsListener(context), statusListener(context)];
}

function statsListener({ proxyConfig, family, envoyPrometheusPort }: BootstrapContext): Json {
  const localOnly = proxyConfig.proxyMetadata?.METRICS_LOCALHOST_ACCESS_ONLY === "true";
  const compressors = (proxyConfig.statsCompression ?? true) ? STATS_COMPRESSORS : [];
  return listener({
    address: localOnly ? family.localhost : family.wildcard,
    additionalAddress: localOnly ? family.additionalLocalhost : family.additionalWildcard,
    port: envoyPrometheusPort,
    filter: httpProxy({
      statPrefix: "stats",
      prefix: "/stats/prometheus",
      cluster: "prometheus_stats",
      httpFilters: [...compressors, ROUTER],
    }),
  });
}

function statusListener({ family, envoyStatusPort, statusPortProxyProtocol }: BootstrapContext): Json {
  return listener({
    address: family.wildcard,
    additionalAddress: family.additionalWildcard,
    port: envoyStatusPort,
    filter: httpProxy({ statPrefix: "agent", prefix: "/healthz/ready", cluster: "agent", httpFilters: [ROUTER] }),
    options: statusPortProxyProtocol ? { listener_filters: [PROXY_PROTOCOL] } : {},
  });
}

const PROXY_PROTOCOL: Json = {
  name: "envoy.listener.proxy_protocol",
  typed_config: {
    "@type": `${EXTENSION}.filters.listener.proxy_protocol.v3.ProxyProtocol`,
    allow_requests_without_proxy_protocol: true,
  },
};

const STATS_COMPRESSORS: readonly Json[] = [
  compressor("brotli", "Brotli"),
  compressor("zstd", "Zstd"),
  compressor("gzip", "Gzip"),
];

function compressor(library: string, type: string): Json {
  return {
    name: `envoy.filters.http.compressor.${library}`,
    typed_config: {
      "@type": `${EXTENSION}.filters.http.compressor.v3.Compressor`,
      compressor_library: {
        name: `stats_${library}`,
        typed_config: { "@type": `${EXTENSION}.compression.${library}.compressor.v3.${type}` },
      },
      response_direction_config: { common_config: { content_type: COMPRESSED_TYPES } },
    },
  };
}

interface HttpProxyInput {
  readonly statPrefix: string;
  readonly prefix: string;
  readonly cluster: string;
  readonly httpFilters: readonly Json[];
}

function httpProxy({ statPrefix, prefix, cluster, httpFilters }: HttpProxyInput): Json {
  const routes = [{ match: { prefix }, route: { cluster } }];
  return {
    name: "envoy.filters.network.http_connection_manager",
    typed_config: {
      "@type": `${EXTENSION}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
      codec_type: "AUTO",
      stat_prefix: statPrefix,
      route_config: { virtual_hosts: [{ name: "backend", domains: ["*"], routes }] },
      http_filters: httpFilters,
    },
  };
}

interface ListenerInput {
  readonly address: string;
  readonly additionalAddress: string | undefined;
  readonly port: number;
  readonly filter: Json;
  readonly options?: Fields;
}

/** Neither limits on connections nor overload may stop probes and scrapes. */
function listener({ address, additionalAddress, port, filter, options = {} }: ListenerInput): Json {
  const at = (ip: string): Json => ({ socket_address: { protocol: "TCP", address: ip, port_value: port } });
  return {
    name: `${address}_${port}`,
    address: at(address),
    ...(additionalAddress === undefined ? {} : { additionalAddresses: [{ address: at(additionalAddress) }] }),
    ignore_global_conn_limit: true,
    bypass_overload_manager: true,
    ...options,
    filter_chains: [{ filters: [filter] }],
  };
}
