import assert from "node:assert/strict";
import { test } from "node:test";
import { lackedFilters } from "./capabilities.ts";

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
