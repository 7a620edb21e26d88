import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_MESH_CONFIG, type MeshConfig } from "#config/mesh/mesh-config.ts";
import { type ProxyOptions, proxyOf } from "../../../test/support/mesh.ts";
import { traitsOf } from "./traits.ts";

const traits = (options: ProxyOptions) => traitsOf(DEFAULT_MESH_CONFIG, proxyOf(options));

test("the address families of a proxy are those of its addresses", () => {
  const ipMode = (...addresses: string[]) => traitsOf(DEFAULT_MESH_CONFIG, { ...proxyOf(), addresses }).listener.ipMode;
  assert.equal(ipMode("10.0.0.1"), "ipv4");
  assert.equal(ipMode("fd00::1"), "ipv6");
  assert.equal(ipMode("10.0.0.1", "fd00::1"), "dual");
});

test("Istio's filters are for proxies that list them", () => {
  assert.equal(traits({}).http.alpnFilter, false);
  assert.equal(traits({}).tcp.metadataExchange, false);
  const both = ["envoy.filters.http.peer_metadata", "envoy.filters.network.metadata_exchange"];
  assert.equal(traits({ extensions: ["istio.alpn", ...both] }).http.alpnFilter, true);
  assert.equal(traits({ extensions: both }).tcp.metadataExchange, true);
  assert.equal(traits({ extensions: both.slice(1) }).tcp.metadataExchange, false);
});

test("switches in node metadata are text, as Go reads booleans", () => {
  for (const on of ["true", "1", "T"]) assert.equal(traits({ metadata: { DNS_CAPTURE: on } }).autoAddresses, true);
  for (const off of ["false", "0", undefined]) {
    assert.equal(traits({ metadata: { DNS_CAPTURE: off } }).autoAddresses, false);
  }
  assert.deepEqual(traits({ metadata: { ENVOY_STATUS_PORT: 15021 } }).listener.reservedPorts, [15021]);
});

test("metadata that makes no sense counts as not set", () => {
  const odd = traits({
    metadata: { IDLE_TIMEOUT: "soon", INTERCEPTION_MODE: 7, ENVOY_STATUS_PORT: "x", PROXY_CONFIG: 3 },
  });
  assert.equal(odd.tcp.idleTimeoutMs, undefined);
  assert.equal(odd.listener.interception, "REDIRECT");
  assert.deepEqual(odd.listener.reservedPorts, []);
  assert.deepEqual(odd.http.headers, {});
});

test("the settings a proxy sends replace those of the mesh", () => {
  const mesh = { ...DEFAULT_MESH_CONFIG, defaultConfig: { tracing: { sampling: 5 } } };
  assert.deepEqual(traitsOf(mesh, proxyOf()).http.tracing, { sampling: 5 });
  const sent = proxyOf({ metadata: { PROXY_CONFIG: { tracing: { sampling: 7 } } } });
  assert.deepEqual(traitsOf(mesh, sent).http.tracing, { sampling: 7 });
});

test("equal traits of different proxies are one object", () => {
  const [a, b] = [traits({ name: "a-1", ip: "10.0.0.1" }), traits({ name: "a-2", ip: "10.0.0.2" })];
  assert.equal(a.http, b.http);
  assert.equal(a.cluster, b.cluster);
  assert.equal(a.listener, b.listener);
  assert.notEqual(a.http, traits({ labels: { "service.istio.io/canonical-name": "other" } }).http);
});

test("who the workload is matters only where spans are tagged with it", () => {
  const named = proxyOf({ labels: { "service.istio.io/canonical-name": "shop" } });
  const workload = (mesh: Partial<MeshConfig>) => traitsOf({ ...DEFAULT_MESH_CONFIG, ...mesh }, named).http.workload;
  assert.equal(workload({})?.canonicalService, "shop");
  assert.equal(workload({ enableTracing: false }), undefined);
  assert.equal(workload({ defaultConfig: { tracing: { enableIstioTags: false } } }), undefined);
});
