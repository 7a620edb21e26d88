import assert from "node:assert/strict";
import { test } from "node:test";
import { referencesIn } from "./references.ts";

test("referencesIn() finds the names that Envoy asks the control plane for, at any depth", () => {
  const found = referencesIn([
    { name: "l", filters: [{ typedConfig: { rds: { routeConfigName: "80", configSource: { ads: {} } } } }] },
    { name: "c", type: "EDS", edsClusterConfig: { serviceName: "other" } },
    { name: "d", type: "EDS" },
    { name: "e", type: "STRICT_DNS" },
    { tls: [{ name: "kubernetes://cert", sdsConfig: { ads: {} } }] },
    { tls: [{ name: "default", sdsConfig: { apiConfigSource: {} } }] },
    { name: "wasm", configDiscovery: { configSource: { ads: {} } } },
    { route: { weightedClusters: { clusters: [{ name: "a" }, { name: "b" }] } } },
  ]);
  assert.deepEqual([...found.routes], ["80"]);
  assert.deepEqual([...found.endpoints], ["other", "d"]);
  assert.deepEqual([...found.secrets], ["kubernetes://cert"]);
  assert.deepEqual([...found.extensions], ["wasm"]);
  assert.deepEqual([...found.clusters], ["a", "b"]);
});
