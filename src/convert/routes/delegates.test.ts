import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpRoute, VirtualService } from "#config/kinds/virtual-service/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { joinDelegates } from "./delegates.ts";

const RULES = { exportTo: ["*"], domain: "cluster.local" };

function object(id: string, spec: VirtualService): ConfigObject<VirtualService> {
  const [namespace = "", name = ""] = id.split("/");
  const metadata = { name, namespace, labels: {}, annotations: {}, createdAt: 0 };
  return { kind: "VirtualService", metadata, spec, origin: undefined };
}

const to = (host: string, rest: HttpRoute = {}): HttpRoute => ({ ...rest, route: [{ destination: { host } }] });
const prefix = (path: string) => ({ uri: { prefix: path } });
const root = (...http: HttpRoute[]) => object("edge/root", { hosts: ["a.com"], gateways: ["gw"], http });
const routesOf = (objects: readonly ConfigObject<VirtualService>[], rules = RULES) =>
  joinDelegates(objects, rules).map(({ metadata, spec }) => [metadata.name, spec.http]);

test("the routes of a delegate take the place of the route that names it", () => {
  const objects = [
    root({ match: [prefix("/shop")], delegate: { name: "shop", namespace: "shop" }, timeout: 5 }, to("other")),
    object("shop/shop", {
      http: [
        to("cart", { match: [prefix("/shop/cart")], name: "cart" }),
        to("front", { timeout: 9, mirror: { host: "copy" } }),
      ],
    }),
  ];
  assert.deepEqual(routesOf(objects), [
    [
      "root",
      [
        to("cart.shop.svc.cluster.local", { timeout: 5, match: [prefix("/shop/cart")], name: "cart" }),
        to("front.shop.svc.cluster.local", {
          timeout: 9,
          match: [prefix("/shop")],
          mirror: { host: "copy.shop.svc.cluster.local" },
        }),
        to("other.edge.svc.cluster.local"),
      ],
    ],
  ]);
});

test("a route that contradicts its root is left out", () => {
  const joined = (match: HttpRoute["match"]) =>
    routesOf([
      root({ match: [prefix("/a"), { headers: { x: { exact: "1" } } }], delegate: { name: "d" } }),
      object("edge/d", { http: [to("b.com", { match })] }),
    ])[0]?.[1];
  assert.deepEqual(joined([{ ...prefix("/b"), headers: { x: { exact: "2" } } }]), []);
  assert.deepEqual(joined([{ uri: { regex: "/a.*" }, headers: { x: { exact: "2" } } }]), []);
  assert.deepEqual(joined([{ ...prefix("/b"), method: { exact: "GET" } }]), [
    to("b.com", { match: [{ ...prefix("/b"), method: { exact: "GET" }, headers: { x: { exact: "1" } } }] }),
  ]);
});

test("gateways of both are compared by their complete names", () => {
  const joined = (gateway: string) =>
    routesOf([
      root({ match: [{ gateways: ["gw"] }], delegate: { name: "d", namespace: "shop" } }),
      object("shop/d", { http: [to("b.com", { match: [{ gateways: [gateway] }] })] }),
    ])[0]?.[1];
  assert.deepEqual(joined("edge/gw"), [to("b.com", { match: [{ gateways: ["edge/gw"] }] })]);
  assert.deepEqual(joined("gw"), []);
});

test("a route stays while its delegate is missing or not for its namespace", () => {
  const waiting = { delegate: { name: "d", namespace: "shop" } };
  const delegate = object("shop/d", { http: [to("b.com")] });
  const hidden = object("shop/d", { exportTo: ["."], http: [to("b.com")] });
  assert.deepEqual(routesOf([root(waiting, to("c.com"))]), [["root", [waiting, to("c.com")]]]);
  assert.deepEqual(routesOf([root(waiting), hidden]), [["root", [waiting]]]);
  assert.deepEqual(routesOf([root(waiting), delegate], { ...RULES, exportTo: ["."] }), [["root", [waiting]]]);
  assert.deepEqual(routesOf([root(waiting), delegate]), [["root", [to("b.com")]]]);
});

test("a route whose delegate is missing leads nowhere, and copies of its requests neither", () => {
  const waiting = { name: "r", match: [prefix("/a")], delegate: { name: "d" } };
  const copied = { ...waiting, timeout: 5, mirror: { host: "copy" }, mirrors: [{ destination: { host: "copy" } }] };
  assert.deepEqual(routesOf([root(copied)]), [["root", [waiting]]]);
});

test("a virtual service with hosts is no delegate, so nothing can go round in circles", () => {
  const circle = object("edge/root", { hosts: ["a.com"], http: [{ delegate: { name: "root" } }] });
  assert.deepEqual(routesOf([circle]), [["root", circle.spec.http]]);
});

test("what did not change is the same as before", () => {
  const objects = [root({ delegate: { name: "d" } }), object("edge/d", { http: [to("b.com")] })];
  const plain = object("edge/plain", { hosts: ["b.com"], http: [to("b.com")] });
  const [first] = joinDelegates(objects, RULES);
  const [second, third] = joinDelegates([...objects, plain], RULES);
  assert.equal(second, first);
  assert.equal(third, plain);
});

test("delegates that would multiply a few routes into gigabytes lead nowhere", () => {
  const routes = Array.from({ length: 1_000 }, (_, i) => to("b.com", { match: [prefix(`/${i}`)] }));
  const roots = Array.from({ length: 1_000 }, (): HttpRoute => ({ delegate: { name: "d" } }));
  const [joined] = joinDelegates([root(...roots, to("last")), object("edge/d", { http: routes })], RULES);
  const http = joined?.spec.http ?? [];
  assert.ok(http.length > 20_000 && http.length < 200_000, `${http.length} routes`);
  assert.deepEqual(http.at(-2), { delegate: { name: "d" } });
  assert.deepEqual(http.at(-1), to("last.edge.svc.cluster.local"));
});
