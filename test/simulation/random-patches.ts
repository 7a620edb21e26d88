/** EnvoyFilters whose patches Envoy takes wherever they fit. */
import fc from "fast-check";

type Json = Readonly<Record<string, unknown>>;

const context = fc.constantFrom("ANY", "SIDECAR_INBOUND", "SIDECAR_OUTBOUND", "GATEWAY");
const port = fc.constantFrom(80, 8080, 9080);
/** Two of one name would not be taken. */
const unique = fc.nat().map((number) => `extra-${number}`);
const anyOf = (type: string, fields: Json = {}) => ({ "@type": `type.googleapis.com/${type}`, ...fields });

const MANAGER = "envoy.filters.network.http_connection_manager";
const LUA = "envoy.extensions.filters.http.lua.v3.Lua";
const HCM = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const TCP = "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy";

function some(fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Json> {
  return fc.record(fields, { requiredKeys: [] });
}

function patch(
  applyTo: string,
  operation: string,
  value: fc.Arbitrary<unknown> | undefined,
  match: fc.Arbitrary<Json>,
) {
  const made =
    value === undefined
      ? fc.record({ operation: fc.constant(operation) })
      : fc.record({ operation: fc.constant(operation), value });
  return fc.record({ applyTo: fc.constant(applyTo), match, patch: made });
}

function match(kind: string, fields: fc.Arbitrary<unknown>): fc.Arbitrary<Json> {
  const proxy = some({
    proxyVersion: fc.constantFrom("^1\\.29", "^1\\.2[0-8]\\."),
    metadata: fc.constant({ NAMESPACE: "prod" }),
  });
  return fc.record({ context, [kind]: fields, proxy }, { requiredKeys: [] });
}

const manager = (subFilter?: string) =>
  some({ portNumber: port }).map((fields) => ({
    ...fields,
    filterChain: { filter: { name: MANAGER, ...(subFilter !== undefined && { subFilter: { name: subFilter } }) } },
  }));
const routes = some({ portNumber: port, name: fc.constantFrom("80", "8080", "inbound|8080||", "http.8080") });
const cluster = some({
  service: fc.constantFrom("web.default.svc.cluster.local", "api.prod.svc.cluster.local"),
  portNumber: port,
  name: fc.constantFrom("PassthroughCluster", "inbound|8080||"),
});

const lua = unique.map((name) => ({
  name,
  typed_config: anyOf(LUA, { default_source_code: { inline_string: "function envoy_on_request(handle) end" } }),
}));
const directRoute = unique.map((name) => ({ name, match: { path: `/${name}` }, direct_response: { status: 204 } }));
const onRoutes = routes.map((fields) => ({ ...fields, vhost: { route: { action: "ROUTE" } } }));

const configPatch = fc.oneof(
  patch("HTTP_FILTER", "INSERT_BEFORE", lua, match("listener", manager("envoy.filters.http.router"))),
  patch("HTTP_FILTER", "INSERT_FIRST", lua, match("listener", manager())),
  patch("HTTP_FILTER", "INSERT_AFTER", lua, match("listener", manager("envoy.filters.http.fault"))),
  patch("HTTP_FILTER", "REPLACE", lua, match("listener", manager("envoy.filters.http.cors"))),
  patch("HTTP_FILTER", "REMOVE", undefined, match("listener", manager("envoy.filters.http.fault"))),
  patch(
    "NETWORK_FILTER",
    "MERGE",
    some({ idle_timeout: fc.constantFrom("5s", "1.5s"), max_headers_count: fc.constant(50) }).map((options) => ({
      typed_config: anyOf(HCM, { common_http_protocol_options: options }),
    })),
    match("listener", manager()),
  ),
  patch(
    "CLUSTER",
    "MERGE",
    some({
      connect_timeout: fc.constantFrom("0.5s", "20s"),
      per_connection_buffer_limit_bytes: fc.constant(1024),
      circuit_breakers: fc.constant({ thresholds: [{ priority: "HIGH", max_connections: 3 }] }),
      alt_stat_name: fc.constant("patched"),
    }),
    match("cluster", cluster),
  ),
  patch(
    "CLUSTER",
    "ADD",
    unique.map((name) => ({ name, connect_timeout: "1s" })),
    match("cluster", fc.constant({})),
  ),
  patch(
    "CLUSTER",
    "REMOVE",
    undefined,
    match("cluster", fc.constant({ name: "outbound|8000||web.default.svc.cluster.local" })),
  ),
  patch(
    "LISTENER",
    "ADD",
    unique.map((name) => ({
      name,
      address: { socket_address: { address: "127.0.0.1", port_value: 0 } },
      filter_chains: [
        { filters: [{ name: "tcp", typed_config: anyOf(TCP, { stat_prefix: name, cluster: "PassthroughCluster" }) }] },
      ],
    })),
    match("listener", fc.constant({})),
  ),
  patch(
    "LISTENER",
    "MERGE",
    fc.constant({ per_connection_buffer_limit_bytes: 4096 }),
    match("listener", some({ portNumber: port })),
  ),
  patch(
    "LISTENER",
    "REMOVE",
    undefined,
    match(
      "listener",
      some({ portNumber: port }).map((fields) => ({ portNumber: 8000, ...fields })),
    ),
  ),
  patch(
    "FILTER_CHAIN",
    "MERGE",
    fc.constant({ transport_socket_connect_timeout: "2s" }),
    match("listener", some({ portNumber: port })),
  ),
  patch(
    "ROUTE_CONFIGURATION",
    "MERGE",
    fc.constant({ request_headers_to_remove: ["x-gone"] }),
    match("routeConfiguration", routes),
  ),
  patch(
    "VIRTUAL_HOST",
    "MERGE",
    fc.constant({ response_headers_to_remove: ["x-gone"] }),
    match("routeConfiguration", routes),
  ),
  patch(
    "VIRTUAL_HOST",
    "ADD",
    fc.tuple(unique, directRoute).map(([name, route]) => ({ name, domains: [`${name}.example.com`], routes: [route] })),
    match("routeConfiguration", routes),
  ),
  patch("HTTP_ROUTE", "MERGE", fc.constant({ route: { timeout: "7s" } }), match("routeConfiguration", onRoutes)),
  patch("HTTP_ROUTE", "INSERT_FIRST", directRoute, match("routeConfiguration", routes)),
  patch("HTTP_ROUTE", "ADD", directRoute, match("routeConfiguration", onRoutes)),
);

/** The spec of an EnvoyFilter. */
export const randomPatches: fc.Arbitrary<Json> = fc.record(
  {
    workloadSelector: fc.record({ labels: fc.record({ app: fc.constantFrom("web", "api") }) }),
    priority: fc.integer({ min: -2, max: 2 }),
    configPatches: fc.array(configPatch, { minLength: 1, maxLength: 4 }),
  },
  { requiredKeys: ["configPatches"] },
);
