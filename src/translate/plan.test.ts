import assert from "node:assert/strict";
import { test } from "node:test";
import type { Snapshot } from "#model/snapshot.ts";
import { meshOf, type ProxyOptions, proxyOf } from "../../test/support/mesh.ts";
import { object, service, workload } from "../../test/support/objects.ts";
import { planGateway, planInbound, planOutbound } from "./plan.ts";
import type { Recipe } from "./recipes/recipe.ts";
import { viewsOf } from "./views/views.ts";

const WEB = service("web", { name: "http", port: 80 }) + workload("web-1", "10.1.0.1");
const API = service("api", { name: "http", port: 80 }) + workload("api-1", "10.1.0.2");

function recipesOf(snapshot: Snapshot, options: ProxyOptions = {}): ReadonlyMap<string, Recipe> {
  const { outbound } = viewsOf(snapshot, proxyOf({ ip: "10.9.0.1", ...options }));
  const { clusters, listeners, routes } = planOutbound(snapshot, outbound);
  const parts = routes.flatMap((route) => route.parts?.recipes ?? []);
  return new Map([...clusters, ...listeners, ...parts].map((recipe) => [recipe.name, recipe]));
}
/** Whether the two would be built from the same, as the cache of the xDS server compares them. */
function isSameInput(a: Recipe | undefined, b: Recipe | undefined): boolean {
  const [one, other] = [Object.entries(a?.input ?? {}), b?.input as Record<string, unknown> | undefined];
  return (
    a?.build === b?.build &&
    one.every(([field, value]) =>
      Array.isArray(value)
        ? value.every((item, i) => Object.is(item, (other?.[field] as unknown[] | undefined)?.[i]))
        : Object.is(value, other?.[field]),
    )
  );
}

test("a change of one service leaves the resources of others as they are", () => {
  const before = meshOf(WEB + API);
  const after = meshOf(
    WEB + API + object("DestinationRule", "web", { host: "web", trafficPolicy: { tls: { mode: "DISABLE" } } }),
    {
      previous: before,
    },
  );
  const [old, next] = [recipesOf(before), recipesOf(after)];
  const changed = [...next.keys()].filter((name) => !isSameInput(old.get(name), next.get(name)));
  assert.deepEqual(changed, ["outbound|80||web.default.svc.cluster.local"]);
});

test("a new endpoint with a known identity changes no cluster, listener or route", () => {
  const before = meshOf(WEB + API);
  const after = meshOf(WEB + API + workload("web-2", "10.1.0.9"), { previous: before });
  const [old, next] = [recipesOf(before), recipesOf(after)];
  assert.deepEqual(
    [...next.keys()].filter((name) => !isSameInput(old.get(name), next.get(name))),
    [],
  );
});

test("workloads share all but what tells of them", () => {
  const mesh = meshOf(WEB + API);
  const [a, b] = [recipesOf(mesh), recipesOf(mesh, { labels: { "service.istio.io/canonical-name": "b" } })];
  const different = [...b.keys()].filter((name) => !isSameInput(a.get(name), b.get(name)));
  assert.deepEqual(different, []);
  const chains = (recipes: ReadonlyMap<string, Recipe>) => recipes.get("0.0.0.0_80")?.parts?.recipes ?? [];
  assert.equal(isSameInput(chains(a)[0], chains(b)[0]), false);
});

test("every resource is there once", () => {
  const mesh = meshOf(WEB + API + object("DestinationRule", "web", { host: "web", subsets: [{ name: "v1" }] }));
  const { outbound, inbound } = viewsOf(mesh, proxyOf({ ip: "10.1.0.1" }));
  assert.ok(inbound);
  for (const plan of [planOutbound(mesh, outbound), planInbound(mesh, inbound)]) {
    for (const recipes of [plan.clusters, plan.listeners, plan.routes]) {
      const names = recipes.map(({ name }) => name);
      assert.deepEqual(names, [...new Set(names)]);
    }
  }
});

test("a router has clusters from its outbound view and the rest from its Gateways", () => {
  const mesh = meshOf(
    WEB +
      object("Gateway", "gate", { servers: [{ port: { number: 80, name: "http", protocol: "HTTP" }, hosts: ["*"] }] }),
  );
  const { outbound, gateway } = viewsOf(mesh, proxyOf({ type: "router" }));
  assert.ok(gateway);
  const [towards, own] = [planOutbound(mesh, outbound), planGateway(mesh, gateway)];
  assert.deepEqual([towards.listeners, towards.routes, own.clusters], [[], [], []]);
  assert.deepEqual(
    own.routes.map(({ name }) => name),
    ["http.80"],
  );
});
