import assert from "node:assert/strict";
import { test } from "node:test";
import { meshOf, proxyOf } from "../../test/support/mesh.ts";
import { object, service, workload } from "../../test/support/objects.ts";
import { patchEffects } from "./idle-patches.ts";

const WEB = [service("web", { name: "http", port: 80 }), workload("web-1", "10.0.0.1")].join("");

/** Which of the patches of one EnvoyFilter change nothing for a sidecar. */
function idle(patches: readonly object[], spec: object = {}): readonly number[] {
  const snapshot = meshOf(`${WEB}${object("EnvoyFilter", "a", { configPatches: patches, ...spec })}`);
  const steps = patchEffects(snapshot, [proxyOf({ labels: { app: "web" } })]);
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done) return step.value.idle.map(({ index }) => index);
  }
}

const merge = (name: string) => ({
  applyTo: "CLUSTER",
  match: { cluster: { name } },
  patch: { operation: "MERGE", value: { alt_stat_name: "x" } },
});

test("patchEffects() tells which patches change nothing", () => {
  const known = merge("outbound|80||web.default.svc.cluster.local");
  assert.deepEqual(idle([known, merge("outbound|80||wbe.default.svc.cluster.local")]), [1]);
});

test("patchEffects() sees what is added, removed and put beside what another patch added", () => {
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

test("patchEffects() tells of what is put together from parts: listeners, chains, routes and their hosts", () => {
  const nowhere = {
    LISTENER: { listener: { name: "nothing" } },
    FILTER_CHAIN: { listener: { filterChain: { name: "nothing" } } },
    NETWORK_FILTER: { listener: { filterChain: { filter: { name: "nothing" } } } },
    ROUTE_CONFIGURATION: { routeConfiguration: { name: "nothing" } },
    VIRTUAL_HOST: { routeConfiguration: { vhost: { name: "nothing" } } },
    HTTP_ROUTE: { routeConfiguration: { vhost: { route: { name: "nothing" } } } },
  };
  const patches = Object.entries(nowhere).map(([applyTo, match]) => {
    const patch = { operation: "MERGE", value: applyTo === "LISTENER" ? { per_connection_buffer_limit_bytes: 7 } : {} };
    return { applyTo, match, patch };
  });
  for (const patch of patches) assert.deepEqual(idle([patch]), [0], patch.applyTo);
});

test("patchEffects() says nothing of patches that are for none of the proxies", () => {
  assert.deepEqual(idle([merge("nothing")], { workloadSelector: { labels: { app: "other" } } }), []);
});
