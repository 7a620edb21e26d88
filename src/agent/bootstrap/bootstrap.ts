/**
 * The bootstrap of Envoy as data, equal to what Istio's agent renders from its template. Pure: the file is written, and
 * what the Envoy at hand lacks is removed, elsewhere.
 */
import { join } from "node:path";
import { parseJson } from "#lib/json/parse-json.ts";
import { addressFamily } from "./addresses.ts";
import { staticClusters } from "./clusters.ts";
import type { BootstrapContext, BootstrapInput, Json } from "./input.ts";
import { staticListeners } from "./listeners.ts";
import { discoversMetadata, stats, statsSinks } from "./stats.ts";

type Fields = { readonly [key: string]: Json };

/** An Envoy bootstrap in JSON. */
export type Bootstrap = { readonly [key: string]: Json };

/** File of the Lightstep token, beside the bootstrap. */
export const LIGHTSTEP_TOKEN_FILE = "lightstep_access_token.txt";

const TYPED_STRUCT = "type.googleapis.com/udpa.type.v1.TypedStruct";
const LARGEST_INT32 = 2 ** 31 - 1;

export function envoyBootstrap(input: BootstrapInput): {
  readonly bootstrap: Bootstrap;
  readonly problems: readonly string[];
} {
  const context: BootstrapContext = { ...input, family: addressFamily(input.addresses, input.dualStack) };
  const problems: string[] = [];
  const bootstrap: Bootstrap = {
    application_log_config: { log_format: logFormat(input.logAsJson) },
    node: nodeOf(context),
    layered_runtime: {
      layers: [
        { name: "global config", static_layer: runtimeFlags(context) },
        { name: "admin", admin_layer: {} },
      ],
    },
    bootstrap_extensions: extensions(context),
    ...stats(context, problems),
    admin: admin(context),
    dynamic_resources: dynamicResources(context),
    static_resources: { clusters: staticClusters(context), listeners: staticListeners(context) },
    overload_manager: overloadManager(context),
    ...tracing(context),
    ...statsSinks(context),
    ...clusterManager(context, problems),
    deferred_stat_options: { enable_deferred_creation_stats: true },
  };
  return { bootstrap, problems };
}

function nodeOf(context: BootstrapContext): Json {
  const { id, cluster, locality } = context.node;
  return { id, cluster, locality: { ...locality }, metadata: nodeMetadata(context) };
}

/** What the control plane knows, and what else was given. */
export function nodeMetadata({ node }: BootstrapContext): Fields {
  return { ...node.extraMetadata, ...node.metadata } as Fields;
}

function logFormat(asJson: boolean): Json {
  if (!asJson) return { text_format: "%Y-%m-%dT%T.%fZ\t%l\tenvoy %n %g:%#\t%v\tthread=%t" };
  return {
    json_format: {
      time: "%Y-%m-%dT%T.%fZ",
      level: "%l",
      scope: "envoy %n",
      msg: "%j",
      caller: "%g:%#",
      thread: "%t",
    },
  };
}

const DEFAULT_FLAGS: readonly (readonly [name: string, value: Json])[] = [
  ["re2.max_program_size.error_level", "32768"],
  ["envoy.deprecated_features:envoy.config.listener.v3.Listener.hidden_envoy_deprecated_use_original_dst", true],
  ["envoy.reloadable_features.http_reject_path_with_fragment", false],
  ["envoy.reloadable_features.fixed_heap_use_allocated", true],
];

/** Defaults and what the user sets, under any name; an empty value removes a default. */
export function runtimeFlags({ proxyConfig, fips, stripFragment }: BootstrapContext): Json {
  const flags = new Map(DEFAULT_FLAGS);
  if (fips) flags.set("envoy.reloadable_features.google_grpc_disable_tls_13", true);
  if (!stripFragment) flags.set("envoy.reloadable_features.http_strip_fragment_from_path_unsafe_if_disabled", "false");
  for (const [name, value] of Object.entries(proxyConfig.runtimeValues ?? {})) {
    if (value === "") flags.delete(name);
    else flags.set(name, value === "true" || value === "false" ? value === "true" : value);
  }
  return Object.fromEntries(flags);
}

function extensions(context: BootstrapContext): Json {
  const metadataDiscovery = {
    name: "metadata_discovery",
    typed_config: {
      "@type": TYPED_STRUCT,
      type_url: "type.googleapis.com/istio.workload.BootstrapExtension",
      value: { config_source: { ads: {} } },
    },
  };
  const internalListener = {
    name: "envoy.bootstrap.internal_listener",
    typed_config: {
      "@type": TYPED_STRUCT,
      type_url: "type.googleapis.com/envoy.extensions.bootstrap.internal_listener.v3.InternalListener",
      value: { buffer_size_kb: 64 },
    },
  };
  return discoversMetadata(context) ? [metadataDiscovery, internalListener] : [internalListener];
}

function admin({ family, proxyConfig }: BootstrapContext): Json {
  return {
    access_log: [
      {
        name: "envoy.access_loggers.file",
        typed_config: {
          "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
          path: "/dev/null",
        },
      },
    ],
    profile_path: "/var/lib/istio/data/envoy.prof",
    address: { socket_address: { address: family.localhost, port_value: proxyConfig.proxyAdminPort } },
  };
}

/** Listeners and clusters come over one stream, and Envoy waits for them without a limit. */
const ADS: Json = { ads: {}, initial_fetch_timeout: "0s", resource_api_version: "V3" };

function dynamicResources({ deltaXds }: BootstrapContext): Json {
  return {
    lds_config: ADS,
    cds_config: ADS,
    ads_config: {
      api_type: deltaXds ? "DELTA_GRPC" : "GRPC",
      set_node_on_first_message_only: true,
      transport_api_version: "V3",
      grpc_services: [{ envoy_grpc: { cluster_name: "xds-grpc" } }],
    },
  };
}

/** Connections of clients that Envoy accepts at the same time. */
export function maxConnections({ proxyConfig }: BootstrapContext): number {
  return (
    wholeNumber(proxyConfig.proxyMetadata?.ISTIO_META_GLOBAL_DOWNSTREAM_MAX_CONNECTIONS) ??
    wholeNumber(proxyConfig.runtimeValues?.["overload.global_downstream_max_connections"]) ??
    LARGEST_INT32
  );
}

function overloadManager(context: BootstrapContext): Json {
  return {
    resource_monitors: [
      {
        name: "envoy.resource_monitors.global_downstream_max_connections",
        typed_config: {
          "@type":
            "type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
          max_active_downstream_connections: maxConnections(context),
        },
      },
    ],
  };
}

function tracing({ proxyConfig, node }: BootstrapContext): Fields {
  const { zipkin, lightstep, datadog } = proxyConfig.tracing ?? {};
  const http = (name: string, type: string, config: Fields): Fields => ({
    tracing: {
      http: {
        name: `envoy.tracers.${name}`,
        typed_config: { "@type": `type.googleapis.com/envoy.config.trace.v3.${type}`, ...config },
      },
    },
  });
  if (zipkin?.address !== undefined) {
    return http("zipkin", "ZipkinConfig", {
      collector_cluster: "zipkin",
      collector_endpoint: "/api/v2/spans",
      collector_endpoint_version: "HTTP_JSON",
      trace_id_128bit: true,
      shared_span_context: false,
    });
  }
  if (lightstep?.address !== undefined) {
    return http("lightstep", "LightstepConfig", {
      collector_cluster: "lightstep",
      access_token_file: join(proxyConfig.configPath, LIGHTSTEP_TOKEN_FILE),
    });
  }
  if (datadog?.address !== undefined) {
    return http("datadog", "DatadogConfig", { collector_cluster: "datadog_agent", service_name: node.cluster });
  }
  return {};
}

function clusterManager({ node, outlierLogPath }: BootstrapContext, problems: string[]): Fields {
  const loadStats = loadStatsConfig(node.extraMetadata.LOAD_STATS_CONFIG_JSON, problems);
  if (outlierLogPath === "" && loadStats === undefined) return {};
  return {
    cluster_manager: {
      enable_deferred_cluster_creation: true,
      ...(outlierLogPath === "" ? {} : { outlier_detection: { event_log_path: outlierLogPath } }),
      ...(loadStats === undefined ? {} : { load_stats_config: loadStats }),
    },
  };
}

function loadStatsConfig(text: unknown, problems: string[]): Json | undefined {
  if (typeof text !== "string") return undefined;
  try {
    return parseJson(text) as Json;
  } catch {
    problems.push(`ISTIO_META_LOAD_STATS_CONFIG_JSON must be JSON, not ${text}`);
    return undefined;
  }
}

function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\+?\d+$/.test(text) ? Number(text) : undefined;
}
