import assert from "node:assert/strict";
import { test } from "node:test";
import { lackedFields, lackedFilters } from "./capabilities.ts";

const WHOLE = [
  "envoy.filters.http.router",
  "envoy.filters.http.cors",
  "envoy.filters.http.fault",
  "envoy.filters.http.grpc_stats",
  "envoy.filters.http.grpc_web",
  "envoy.filters.http.stateful_session",
  "envoy.filters.network.mongo_proxy",
  "envoy.filters.network.mysql_proxy",
  "envoy.filters.network.redis_proxy",
];

test("lackedFilters() names what a trimmed Envoy does not have", () => {
  const without = (name: string) => new Set(WHOLE.filter((one) => one !== name));
  assert.deepEqual(lackedFilters({ extensions: new Set(WHOLE) }), []);
  assert.deepEqual(lackedFilters({ extensions: without("envoy.filters.network.mongo_proxy") }), [
    "envoy.filters.network.mongo_proxy",
  ]);
});

test("lackedFilters() believes that an Envoy which does not say has everything", () => {
  assert.deepEqual(lackedFilters({ extensions: new Set() }), []);
  assert.deepEqual(lackedFilters({ extensions: new Set(["istio.alpn"]) }), []);
});

test("lackedFields() names what is newer than the Envoy", () => {
  const lacked = (envoyVersion: string) => lackedFields({ envoyVersion });
  assert.deepEqual(lacked("1.40.0"), []);
  assert.deepEqual(lacked("1.32.0-dev"), []);
  assert.deepEqual(lacked("1.31.9"), ["Cluster.dns_jitter"]);
  assert.equal(lacked("1.28.0").length, 4);
});

test("lackedFields() believes that an Envoy which does not say has everything", () => {
  for (const envoyVersion of ["", "latest", "2.0.0", "v1"]) assert.deepEqual(lackedFields({ envoyVersion }), []);
});
