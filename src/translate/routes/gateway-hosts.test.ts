import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Snapshot } from "#model/snapshot.ts";
import { meshOf, proxyOf } from "../../../test/support/mesh.ts";
import { object, service } from "../../../test/support/objects.ts";
import { recipeBytes } from "../patches/recipe-tree.ts";
import { planGateway } from "../plan.ts";
import type { Recipe } from "../recipes/recipe.ts";
import { viewsOf } from "../views/views.ts";

const port = (name: string) => ({ number: 80, name, protocol: "HTTP" });
/** Two Gateways that share a port, one of which redirects some hosts. */
const GATEWAYS =
  object("Gateway", "one", {
    selector: { app: "gate" },
    servers: [
      { port: port("http"), hosts: ["a.example.com", "other/*.example.org"] },
      { port: port("redirected"), hosts: ["b.example.com", "*.example.com"], tls: { httpsRedirect: true } },
    ],
  }) + object("Gateway", "two", { selector: { app: "gate" }, servers: [{ port: port("http"), hosts: ["*"] }] });
const ROUTER = proxyOf({ type: "router", labels: { app: "gate" } });

function hostsOf(snapshot: Snapshot): readonly Recipe[] {
  const { gateway } = viewsOf(snapshot, ROUTER);
  assert.ok(gateway);
  const [routes] = planGateway(snapshot, gateway).routes;
  assert.equal(routes?.name, "http.80");
  return routes.parts?.recipes ?? [];
}

function bytesOf(snapshot: Snapshot): readonly (readonly string[])[] {
  return hostsOf(snapshot).map((host) => [host.name, Buffer.from(recipeBytes(host)).toString("base64")]);
}

const NAMES = ["v1", "v2", "other/v3", "other/v4", "v5"];
const virtualService = fc.record({
  hosts: fc.constantFrom(
    ["a.example.com"],
    ["b.example.com", "a.example.com", "c.example.com"],
    ["A.example.com"],
    ["*.example.org"],
    ["x.example.org", "c.example.com"],
    ["*"],
  ),
  gateways: fc.uniqueArray(fc.constantFrom("default/one", "default/two"), { minLength: 1 }),
  exportTo: fc.constantFrom(["*"], ["."], ["default"], undefined),
  http: fc.constantFrom(
    [{ route: [{ destination: { host: "web.default.svc.cluster.local" } }] }],
    [{ timeout: "3s", route: [{ destination: { host: "web.default.svc.cluster.local", subset: "v1" } }] }],
    [{ match: [{ uri: { prefix: "/x" } }], redirect: { uri: "/y" } }],
    [{ match: [{ port: 81 }], redirect: { uri: "/z" } }],
  ),
});
const world = fc.record({
  virtualServices: fc.tuple(...NAMES.map(() => fc.option(virtualService, { nil: undefined }))),
  hashes: fc.boolean(),
  ports: fc.constantFrom([80], [80, 81], [8080]),
});

type World = typeof world extends fc.Arbitrary<infer Value> ? Value : never;

function yamlOf({ virtualServices, hashes, ports }: World): string {
  const consistentHash = { httpHeaderName: "x-user" };
  return [
    GATEWAYS,
    service("web", ...ports.map((port) => ({ name: `http-${port}`, port }))),
    ...(hashes
      ? [object("DestinationRule", "web", { host: "web", trafficPolicy: { loadBalancer: { consistentHash } } })]
      : []),
    ...virtualServices.map((spec, i) => (spec === undefined ? "" : object("VirtualService", NAMES[i] ?? "", spec))),
  ].join("");
}

test("hosts that followed many changes are those of a router that starts with the last of them", () => {
  fc.assert(
    fc.property(fc.array(world, { minLength: 2, maxLength: 6 }), fc.boolean(), (worlds, collapseRoutes) => {
      let previous: Snapshot | undefined;
      for (const yaml of worlds.map(yamlOf)) {
        const features = { collapseRoutes };
        previous = meshOf(yaml, { features, ...(previous && { previous }) });
        assert.deepEqual(bytesOf(previous), bytesOf(meshOf(yaml, { features })));
      }
    }),
    { numRuns: 60 },
  );
});

test("of hosts that a change does not concern the recipes are those of before", () => {
  const routeTo = (host: string, timeout: string) => ({
    hosts: [host],
    gateways: ["two"],
    http: [{ timeout, route: [{ destination: { host: "web" } }] }],
  });
  const names = ["u", "v", "w", "x"];
  const yaml = (timeout: string) =>
    GATEWAYS +
    names
      .map((name) => object("VirtualService", name, routeTo(`${name}.example.net`, name === "v" ? timeout : "1s")))
      .join("");
  const before = meshOf(yaml("1s"));
  const [old, next] = [hostsOf(before), hostsOf(meshOf(yaml("2s"), { previous: before }))];
  assert.deepEqual(
    next.filter((host) => !old.includes(host)).map(({ name }) => name),
    ["v.example.net:80"],
  );
});

test("two states of a mesh can be asked for in turns", () => {
  const spec = (timeout: string) => ({
    hosts: ["a.example.com"],
    gateways: ["one"],
    http: [{ timeout, route: [{ destination: { host: "web" } }] }],
  });
  const first = meshOf(GATEWAYS + object("VirtualService", "v1", spec("1s")));
  const second = meshOf(GATEWAYS + object("VirtualService", "v1", spec("2s")), { previous: first });
  const [one, two] = [bytesOf(first), bytesOf(second)];
  assert.notDeepEqual(one, two);
  assert.deepEqual([bytesOf(first), bytesOf(second), bytesOf(first)], [one, two, one]);
});
