import type { Bootstrap } from "../bootstrap/bootstrap.ts";
import type { Json } from "../bootstrap/input.ts";
import { PROBE_SOURCE_V4 } from "../status/probes/connect.ts";

const TYPE = "type.googleapis.com/envoy.extensions";
/** Says where a tunnel leads. */
export const DESTINATION_HEADER = "x-envoy-original-dst-host";
const NAME = "inside";
/** 0600 */
const PRIVATE = 384;

/**
 * A bootstrap with a socket file through which somebody outside of Envoy's network namespace reaches what is inside:
 * each `CONNECT` becomes a connection to the address that its header names.
 */
export function withInsideListener(bootstrap: Bootstrap, path: string): Bootstrap {
  const { listeners, clusters, ...rest } = resourcesOf(bootstrap);
  return {
    ...bootstrap,
    static_resources: {
      ...rest,
      clusters: [...listOf(clusters), CLUSTER],
      listeners: [...listOf(listeners), listener(path)],
    },
  };
}

const CLUSTER: Json = {
  name: NAME,
  type: "ORIGINAL_DST",
  lb_policy: "CLUSTER_PROVIDED",
  connect_timeout: "5s",
  original_dst_lb_config: { use_http_header: true, http_header_name: DESTINATION_HEADER },
  upstream_bind_config: { source_address: { address: PROBE_SOURCE_V4, port_value: 0 } },
};

function listener(path: string): Json {
  const route: Json = {
    match: { connect_matcher: {} },
    route: { cluster: NAME, timeout: "0s", upgrade_configs: [{ upgrade_type: "CONNECT", connect_config: {} }] },
  };
  const manager: Json = {
    "@type": `${TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: NAME,
    upgrade_configs: [{ upgrade_type: "CONNECT" }],
    route_config: { virtual_hosts: [{ name: NAME, domains: ["*"], routes: [route] }] },
    http_filters: [
      { name: "envoy.filters.http.router", typed_config: { "@type": `${TYPE}.filters.http.router.v3.Router` } },
    ],
  };
  return {
    name: NAME,
    address: { pipe: { path, mode: PRIVATE } },
    ignore_global_conn_limit: true,
    bypass_overload_manager: true,
    filter_chains: [{ filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }] }],
  };
}

function resourcesOf({ static_resources: resources }: Bootstrap): { readonly [key: string]: Json } {
  return typeof resources === "object" && !Array.isArray(resources)
    ? (resources as { readonly [key: string]: Json })
    : {};
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
