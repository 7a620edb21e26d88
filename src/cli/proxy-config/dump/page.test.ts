import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "@bufbuild/protobuf";
import { allDescriptors } from "#lib/descriptors.ts";
import { compareDumps } from "./comparison.ts";
import { configDumpOf, parseConfigDump } from "./dump.ts";
import { formatPage, type PageOptions } from "./page.ts";

const ADMIN = "type.googleapis.com/envoy.admin.v3";
const HCM = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const TCP = "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy";

function listener(name: string, port: number, ...filters: readonly JsonObject[]): JsonObject {
  return {
    name,
    active_state: {
      version_info: "1",
      listener: {
        "@type": "type.googleapis.com/envoy.config.listener.v3.Listener",
        name,
        address: { socket_address: { address: "0.0.0.0", port_value: port } },
        filter_chains: filters.map((filter) => ({ filters: [filter] })),
      },
    },
  };
}

const http = (config: JsonObject): JsonObject => ({
  name: "envoy.filters.network.http_connection_manager",
  typed_config: { "@type": HCM, ...config },
});
const tcp = (cluster: string): JsonObject => ({
  name: "envoy.filters.network.tcp_proxy",
  typed_config: { "@type": TCP, stat_prefix: "x", cluster },
});

const cluster = (name: string, more: JsonObject = {}): JsonObject => ({
  cluster: { "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", name, ...more },
});
const route = (name: string, domains: readonly string[]): JsonObject => ({
  route_config: {
    "@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
    name,
    virtual_hosts: [
      { name: "host", domains: [...domains], routes: [{ match: { prefix: "/" }, route: { cluster: "c" } }] },
    ],
  },
});

const DUMP: JsonObject = {
  configs: [
    {
      "@type": `${ADMIN}.ClustersConfigDump`,
      dynamic_active_clusters: [
        cluster("outbound|80|v2|b.example.com", {
          type: "EDS",
          metadata: {
            filter_metadata: {
              istio: { config: "/apis/networking.istio.io/v1/namespaces/prod/destination-rule/rule" },
            },
          },
        }),
        cluster("outbound|90||a.example.com", { type: "STRICT_DNS", brand_new_field: 1 }),
      ],
      static_clusters: [cluster("agent")],
    },
    {
      "@type": `${ADMIN}.ListenersConfigDump`,
      dynamic_listeners: [
        listener("b", 9080, http({ rds: { route_config_name: "9080" } }), tcp("outbound|1||x")),
        listener("a", 80, {
          name: "new",
          typed_config: { "@type": "type.googleapis.com/envoy.brand.new.Filter", some_field: [1] },
        }),
      ],
    },
    { "@type": `${ADMIN}.RoutesConfigDump`, dynamic_route_configs: [route("9080", ["a"]), route("80", ["b", "b:80"])] },
    {
      "@type": `${ADMIN}.SecretsConfigDump`,
      dynamic_active_secrets: [{ name: "default" }],
    },
  ],
};
const TEXT = JSON.stringify(DUMP);

const options = (more: Partial<PageOptions> = {}): PageOptions => ({
  format: "short",
  filter: {},
  verbose: true,
  withHeaders: false,
  now: new Date(0),
  registry: allDescriptors(),
  ...more,
});
const page = (name: string, more?: Partial<PageOptions>) => formatPage(name, JSON.parse(TEXT), options(more));

test("clusters are shown by host, with the rule that made them", () => {
  assert.equal(
    page("cluster"),
    [
      "SERVICE FQDN      PORT     SUBSET     DIRECTION     TYPE           DESTINATION RULE",
      "a.example.com     90       -          outbound      STRICT_DNS     ",
      "agent             -        -          -             STATIC         ",
      "b.example.com     80       v2         outbound      EDS            rule.prod",
      "",
    ].join("\n"),
  );
  const names = (filter: PageOptions["filter"]) =>
    JSON.parse(page("cluster", { format: "json", filter })).map(({ name }: { name: string }) => name);
  assert.deepEqual(names({ port: 80 }), ["outbound|80|v2|b.example.com"]);
  assert.deepEqual(names({ fqdn: "example", direction: "outbound", subset: "v2" }), ["outbound|80|v2|b.example.com"]);
  assert.deepEqual(names({ fqdn: "nobody" }), []);
});

test("listeners are shown by port; filters of unknown types are carried along", () => {
  assert.equal(
    page("listener"),
    [
      "ADDRESSES PORT MATCH DESTINATION",
      "0.0.0.0   80   ALL   Non-HTTP/Non-TCP",
      "0.0.0.0   9080 ALL   Route: 9080",
      "0.0.0.0   9080 ALL   Cluster: outbound|1||x",
      "",
    ].join("\n"),
  );
  assert.match(page("listener", { verbose: false }), /^0\.0\.0\.0 {3}9080 HTTP\+TCP$/m);
  const [shown] = JSON.parse(page("listener", { format: "json", filter: { port: 80 } }));
  assert.deepEqual(shown.filterChains[0].filters[0].typedConfig, {
    "@type": "type.googleapis.com/envoy.brand.new.Filter",
    some_field: [1],
  });
  assert.deepEqual(JSON.parse(page("listener", { format: "json", filter: { type: "tcp" } })), []);
});

test("routes are shown in the order of their numbers", () => {
  assert.match(page("route"), /^80 +host +b +\/\* +\n9080 +host +a +\/\* +$/m);
  assert.equal(page("route", { verbose: false }), "NAME     VIRTUAL HOSTS\n80       1\n9080     1\n");
  assert.match(page("route", { format: "yaml", filter: { name: "80" } }), /^- name: "80"\n|^- name: '80'\n/);
});

test("secrets without a readable certificate are shown by their names", () => {
  assert.match(page("secret"), /^default +ACTIVE +false/m);
});

test("endpoints are read from Envoy's page of clusters as well", () => {
  const statuses = {
    cluster_statuses: [
      {
        name: "outbound|80||a",
        host_statuses: [
          {
            address: { socket_address: { address: "10.0.0.1", port_value: 8080 } },
            health_status: { eds_health_status: "HEALTHY", failed_outlier_check: true },
          },
          { address: { pipe: { path: "/x" } } },
        ],
      },
    ],
  };
  const show = (filter: PageOptions["filter"]) => formatPage("endpoint", statuses, options({ filter }));
  assert.match(show({}), /^10\.0\.0\.1:8080 +HEALTHY +FAILED +outbound\|80\|\|a$/m);
  assert.match(show({}), /^unix:\/\/\/x +UNKNOWN +OK/m);
  assert.doesNotMatch(show({ status: "healthy" }), /unix/);
  assert.doesNotMatch(show({ cluster: "other" }), /10\.0/);
});

test("what is no config dump, or lacks what is asked for, is said", () => {
  const parse = (text: string) => () => parseConfigDump(text, allDescriptors());
  assert.throws(parse("{"), /as JSON/);
  assert.throws(parse("[]"), /no "configs"/);
  assert.throws(() => formatPage("cluster", { configs: [] }, options()), /no ClustersConfigDump/);
  const empty = { configs: [{ "@type": `${ADMIN}.ListenersConfigDump` }] };
  assert.throws(() => formatPage("listener", empty, options()), /no listeners/);
  const wrong = { configs: [{ "@type": `${ADMIN}.ListenersConfigDump`, dynamic_listeners: 5 }] };
  assert.throws(() => formatPage("listener", wrong, options()), /Cannot read/);
});

test("compareDumps() says which sections differ and how", () => {
  const dump = (text: string) => configDumpOf(JSON.parse(text), allDescriptors());
  assert.equal(compareDumps(dump(TEXT), dump(TEXT)), "Clusters Match\nListeners Match\nRoutes Match\n");
  const other = compareDumps(dump(TEXT), dump(TEXT.replace("b.example.com", "c.example.com").replace('"1"', '"2"')));
  assert.match(other, /^Clusters Don't Match\n--- Istiod Clusters\n\+\+\+ Envoy Clusters\n@@ /);
  assert.match(other, /^- +"name": "outbound\|80\|v2\|b\.example\.com"/m);
  assert.match(other, /\nListeners Match\nRoutes Match\n$/);
});
