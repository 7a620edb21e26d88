import assert from "node:assert/strict";
import { test } from "node:test";
import { toJson } from "@bufbuild/protobuf";
import { HttpConnectionManagerSchema } from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import { allDescriptors } from "#lib/descriptors.ts";
import { type MeshOptions, meshOf, type ProxyOptions, proxyOf } from "../../../test/support/mesh.ts";
import { object, service, workload } from "../../../test/support/objects.ts";
import { translated, unpacked } from "../../../test/support/translated.ts";
import { planOutbound } from "../plan.ts";
import { viewsOf } from "../views/views.ts";
import { recipeBytes } from "./recipe-tree.ts";

const WEB = [
  service("web", { name: "http", port: 80, targetPort: 8080 }, { name: "tcp", port: 90 }),
  workload("web-1", "10.0.0.1"),
].join("");
const WEB_CLUSTER = "outbound|80||web.default.svc.cluster.local";

interface Patch {
  readonly applyTo: string;
  readonly match?: object;
  readonly patch: object;
}

function filter(where: string, patches: readonly Patch[], spec: object = {}, metadata: object = {}): string {
  return object("EnvoyFilter", where, { configPatches: patches, ...spec }, metadata);
}

function merge(applyTo: string, value: object, match?: object): Patch {
  return { applyTo, patch: { operation: "MERGE", value }, ...(match && { match }) };
}

/** A patch that tells where it took effect, and when. */
function mark(name: string, match: object = {}): Patch {
  return merge("CLUSTER", { alt_stat_name: name }, { cluster: { name: WEB_CLUSTER }, ...match });
}

function of(filters: string, proxy: ProxyOptions = {}, options: MeshOptions = {}) {
  return translated(meshOf(`${WEB}${filters}`, options), proxyOf({ labels: { app: "web" }, ...proxy }));
}

function marked(filters: string, proxy: ProxyOptions = {}): string {
  return of(filters, proxy).cluster(WEB_CLUSTER).altStatName;
}

const UNMARKED = marked("");

test("filters of the root namespace and of the proxy's own apply", () => {
  assert.equal(marked(filter("istio-system/a", [mark("x")])), "x");
  assert.equal(marked(filter("default/a", [mark("x")])), "x");
  assert.equal(marked(filter("other/a", [mark("x")])), UNMARKED);
});

test("a workload selector has to fit", () => {
  const selecting = (app: string) => filter("a", [mark("x")], { workloadSelector: { labels: { app } } });
  assert.equal(marked(selecting("web")), "x");
  assert.equal(marked(selecting("api")), UNMARKED);
});

test("a filter for a Gateway of the Gateway API is for its proxies alone", () => {
  const targetRefs = [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "front" }];
  const targeted = filter("a", [mark("x")], { targetRefs });
  const labels = { "gateway.networking.k8s.io/gateway-name": "front" };
  assert.equal(marked(targeted), UNMARKED);
  assert.equal(marked(targeted, { type: "router", labels, ip: "10.0.0.9" }), "x");
});

test("the proxy's version and metadata have to fit", () => {
  const forProxy = (proxy: object) => filter("a", [mark("x", { proxy })]);
  assert.equal(marked(forProxy({ proxyVersion: "^1\\.29.*" })), "x");
  assert.equal(marked(forProxy({ proxyVersion: "29" })), "x");
  assert.equal(marked(forProxy({ proxyVersion: "^1\\.28.*" })), UNMARKED);
  assert.equal(marked(forProxy({ proxyVersion: ".*" }), { metadata: { ISTIO_VERSION: "" } }), UNMARKED);
  assert.equal(marked(forProxy({ metadata: { TIER: "gold" } }), { metadata: { TIER: "gold" } }), "x");
  assert.equal(marked(forProxy({ metadata: { TIER: "1" } }), { metadata: { TIER: 1 } }), UNMARKED);
  assert.equal(marked(forProxy({ metadata: { toString: "x" } })), UNMARKED);
});

test("lower priorities are applied first, then the root namespace, then the older, then by name", () => {
  const at = (where: string, priority: number, creationTimestamp = "2024-01-01T00:00:00Z") =>
    filter(where, [mark(where)], { priority }, { creationTimestamp });
  assert.equal(marked(at("default/a", 1) + at("istio-system/b", 2)), "istio-system/b");
  assert.equal(marked(at("default/a", 1) + at("istio-system/b", 1)), "default/a");
  assert.equal(marked(at("default/a", -1) + at("istio-system/b", -2)), "default/a");
  assert.equal(marked(at("default/a", 0, "2025-01-01T00:00:00Z") + at("default/b", 0)), "default/a");
  assert.equal(marked(at("default/a", 0) + at("default/b", 0)), "default/b");
});

test("a context keeps a patch to one part of the configuration", () => {
  const limit = (context: string) =>
    filter("a", [merge("CLUSTER", { per_connection_buffer_limit_bytes: 7 }, { context })]);
  const limits = (context: string) => {
    const { clusters } = of(limit(context));
    return ["inbound|8080||", WEB_CLUSTER].map((name) => clusters.get(name)?.perConnectionBufferLimitBytes);
  };
  assert.deepEqual(limits("ANY"), [7, 7]);
  assert.deepEqual(limits("SIDECAR_INBOUND"), [7, undefined]);
  assert.deepEqual(limits("SIDECAR_OUTBOUND"), [undefined, 7]);
  assert.deepEqual(limits("GATEWAY"), [undefined, undefined]);
});

test("a duration is replaced as a whole, lists grow", () => {
  const value = { connect_timeout: "0.5s", circuit_breakers: { thresholds: [{ priority: "HIGH" }] } };
  const cluster = of(filter("a", [merge("CLUSTER", value, { cluster: { name: WEB_CLUSTER } })])).cluster(WEB_CLUSTER);
  assert.deepEqual([cluster.connectTimeout?.seconds, cluster.connectTimeout?.nanos], [0n, 500_000_000]);
  assert.equal(cluster.circuitBreakers?.thresholds.length, 2);
});

test("clusters are removed, renamed and added, each name once", () => {
  const names = (...patches: Patch[]) => [...of(filter("a", patches)).clusters.keys()].sort();
  const all = names();
  const onWeb = { cluster: { service: "web.default.svc.cluster.local", portNumber: 80 }, context: "SIDECAR_OUTBOUND" };
  const remove = { applyTo: "CLUSTER", match: onWeb, patch: { operation: "REMOVE" } };
  assert.deepEqual(
    names(remove),
    all.filter((name) => name !== WEB_CLUSTER),
  );
  assert.ok(names(merge("CLUSTER", { name: "renamed" }, onWeb), remove).includes("renamed"));
  const add = { applyTo: "CLUSTER", patch: { operation: "ADD", value: { name: "mine" } } };
  assert.deepEqual(names(add, add), [...all, "mine"].sort());
  assert.deepEqual(names({ ...add, patch: { operation: "ADD", value: { name: WEB_CLUSTER } } }), all);
});

test("a cluster that no patch touches keeps its recipe", () => {
  const snapshot = meshOf(`${WEB}${filter("a", [mark("x")])}`);
  const { clusters, listeners } = planOutbound(snapshot, viewsOf(snapshot, proxyOf()).outbound);
  const patched = [...clusters, ...listeners].filter(({ unpatched }) => unpatched !== undefined);
  assert.deepEqual(
    patched.map(({ name }) => name),
    [WEB_CLUSTER],
  );
});

test("what a proxy rejects can be had without the patches", () => {
  const snapshot = meshOf(`${WEB}${filter("a", [mark("x")])}`);
  const plain = meshOf(WEB);
  const recipeOf = (mesh: typeof snapshot) =>
    planOutbound(mesh, viewsOf(mesh, proxyOf()).outbound).clusters.find(({ name }) => name === WEB_CLUSTER);
  const unpatched = recipeOf(snapshot)?.unpatched;
  const expected = recipeOf(plain);
  assert.ok(unpatched && expected);
  assert.deepEqual(recipeBytes(unpatched), recipeBytes(expected));
});

test("listeners are removed by port and name, and chains by port", () => {
  const names = (listener: object) => [
    ...of(filter("a", [{ applyTo: "LISTENER", match: { listener }, patch: { operation: "REMOVE" } }])).listeners.keys(),
  ];
  assert.ok(names({ portNumber: 9999 }).includes("0.0.0.0_80"));
  assert.ok(!names({ portNumber: 80 }).includes("0.0.0.0_80"));
  assert.deepEqual(names({ name: "virtualInbound" }).includes("virtualInbound"), false);
  const chains = (match: object) =>
    of(filter("a", [{ applyTo: "FILTER_CHAIN", match, patch: { operation: "REMOVE" } }])).listener("virtualInbound")
      .filterChains;
  const ports = (match: object) => chains(match).map(({ filterChainMatch }) => filterChainMatch?.destinationPort);
  assert.ok(ports({ context: "SIDECAR_OUTBOUND" }).includes(8080));
  assert.ok(!ports({ context: "SIDECAR_INBOUND", listener: { portNumber: 8080 } }).includes(8080));
});

test("a listener without a name is none", () => {
  const add = { applyTo: "LISTENER", patch: { operation: "ADD", value: { per_connection_buffer_limit_bytes: 1 } } };
  assert.ok(!of(filter("a", [add])).listeners.has(""));
});

const LUA = "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua";

function httpFilters(patches: readonly Patch[]): string[] {
  const [chain] = of(filter("a", patches)).listener("0.0.0.0_80").filterChains;
  const config = chain?.filters.at(-1)?.configType;
  assert.ok(config?.case === "typedConfig");
  return unpacked(HttpConnectionManagerSchema, config.value).httpFilters.map(({ name }) => name);
}

function httpFilter(operation: string, name: string, beside?: string): Patch {
  const manager = {
    name: "envoy.filters.network.http_connection_manager",
    ...(beside && { subFilter: { name: beside } }),
  };
  const value = operation === "REMOVE" ? undefined : { name, typed_config: { "@type": LUA } };
  const match = { context: "SIDECAR_OUTBOUND", listener: { filterChain: { filter: manager } } };
  return { applyTo: "HTTP_FILTER", match, patch: { operation, value } };
}

test("HTTP filters are put first, last, before and after others", () => {
  const before = httpFilters([]);
  const [first = "", ...rest] = before;
  assert.deepEqual(httpFilters([httpFilter("INSERT_FIRST", "x")]), ["x", ...before]);
  assert.deepEqual(httpFilters([httpFilter("INSERT_BEFORE", "x")]), ["x", ...before]);
  assert.deepEqual(httpFilters([httpFilter("ADD", "x")]), [...before, "x"]);
  assert.deepEqual(httpFilters([httpFilter("INSERT_AFTER", "x", first)]), [first, "x", ...rest]);
  assert.deepEqual(httpFilters([httpFilter("REPLACE", "x", first)]), ["x", ...rest]);
  assert.deepEqual(httpFilters([httpFilter("REMOVE", "", first)]), rest);
  assert.deepEqual(httpFilters([httpFilter("INSERT_BEFORE", "x", "nothing")]), before);
  assert.deepEqual(httpFilters([httpFilter("REMOVE", "")]), before);
  assert.deepEqual(httpFilters([httpFilter("MERGE", "renamed", first)]), ["renamed", ...rest]);
});

test("routes of the workload's own ports are patched inside its listener", () => {
  const match = { context: "SIDECAR_INBOUND", routeConfiguration: { name: "inbound|8080||" } };
  const { filterChains } = of(filter("a", [merge("HTTP_ROUTE", { route: { timeout: "7s" } }, match)])).listener(
    "virtualInbound",
  );
  const timeouts = filterChains.flatMap(({ filters, filterChainMatch }) => {
    const config = filters.at(-1)?.configType;
    if (config?.case !== "typedConfig" || !config.value.typeUrl.endsWith("HttpConnectionManager")) return [];
    const json = JSON.stringify(
      toJson(HttpConnectionManagerSchema, unpacked(HttpConnectionManagerSchema, config.value), {
        registry: allDescriptors(),
      }),
    );
    return [[filterChainMatch?.destinationPort, json.includes('"timeout":"7s"')]];
  });
  assert.ok(timeouts.some(([port, isPatched]) => port === 8080 && isPatched));
  assert.ok(timeouts.every(([port, isPatched]) => (port === 8080) === isPatched));
});

test("settings of extensions are there by name, each once", () => {
  const value = { name: "mine", typed_config: { "@type": LUA } };
  const add = { applyTo: "EXTENSION_CONFIG", match: { context: "GATEWAY" }, patch: { operation: "ADD", value } };
  const snapshot = meshOf(`${WEB}${filter("a", [add, add])}`);
  const { extensions } = planOutbound(snapshot, viewsOf(snapshot, proxyOf()).outbound);
  assert.deepEqual(
    extensions.map(({ name }) => name),
    ["mine"],
  );
});

test("a patch that breaks a constraint is left out, the others of its object are not", () => {
  const broken = merge("CLUSTER", { connect_timeout: "0s", alt_stat_name: "broken" });
  assert.equal(marked(filter("a", [mark("x"), broken])), "x");
});

test("settings of another type are left alone", () => {
  const value = { name: "", typed_config: { "@type": LUA } };
  const before = httpFilters([]);
  assert.deepEqual(
    httpFilters([{ ...httpFilter("MERGE", "", before[0]), patch: { operation: "MERGE", value } }]),
    before,
  );
});
