import assert from "node:assert/strict";
import { test } from "node:test";
import { meshOf, proxyOf } from "../../../test/support/mesh.ts";
import { object, service, workload } from "../../../test/support/objects.ts";
import { idlePatches } from "./idle.ts";

const WEB = [service("web", { name: "http", port: 80 }), workload("web-1", "10.0.0.1")].join("");

/** Which of the patches of one EnvoyFilter change nothing for a sidecar. */
function idle(patches: readonly object[], spec: object = {}): readonly number[] {
  const snapshot = meshOf(`${WEB}${object("EnvoyFilter", "a", { configPatches: patches, ...spec })}`);
  const steps = idlePatches(snapshot, [proxyOf({ labels: { app: "web" } })]);
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done) return step.value.map(({ index }) => index);
  }
}

const merge = (name: string) => ({
  applyTo: "CLUSTER",
  match: { cluster: { name } },
  patch: { operation: "MERGE", value: { alt_stat_name: "x" } },
});

test("idlePatches() tells which patches change nothing", () => {
  const known = merge("outbound|80||web.default.svc.cluster.local");
  assert.deepEqual(idle([known, merge("outbound|80||wbe.default.svc.cluster.local")]), [1]);
});

test("idlePatches() sees what is added, removed and put beside what another patch added", () => {
  const remove = (name: string) => ({
    applyTo: "CLUSTER",
    match: { cluster: { name } },
    patch: { operation: "REMOVE" },
  });
  const add = { applyTo: "CLUSTER", patch: { operation: "ADD", value: { name: "mine" } } };
  const filter = (operation: string, name: string, beside?: string) => ({
    applyTo: "HTTP_FILTER",
    match: {
      listener: {
        filterChain: {
          filter: {
            name: "envoy.filters.network.http_connection_manager",
            ...(beside && { subFilter: { name: beside } }),
          },
        },
      },
    },
    patch: {
      operation,
      value: { name, typed_config: { "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua" } },
    },
  });
  const patches = [
    add,
    remove("PassthroughCluster"),
    remove("nothing"),
    filter("INSERT_FIRST", "one"),
    filter("INSERT_AFTER", "two", "one"),
    filter("INSERT_AFTER", "three", "nothing"),
  ];
  assert.deepEqual(idle(patches), [2, 5]);
});

test("idlePatches() says nothing of patches that are for none of the proxies", () => {
  assert.deepEqual(idle([merge("nothing")], { workloadSelector: { labels: { app: "other" } } }), []);
});
