import assert from "node:assert/strict";
import { test } from "node:test";
import { objectKey } from "#config/schema/config-object.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { meshOf } from "../../../test/support/mesh.ts";
import { object, service } from "../../../test/support/objects.ts";
import { scopeOf } from "./egress.ts";

const HTTP = { name: "http", port: 80 };
const SERVICES =
  service("prod/web", HTTP, { name: "admin", port: 9090 }) +
  service("prod/db", { name: "tcp", port: 5432 }) +
  service("test/web", HTTP) +
  service("test/only", HTTP);

const sidecar = (...egress: readonly object[]) => object("Sidecar", "prod/own", { egress });

function scope(mesh: Snapshot, namespace = "prod") {
  const [first] = mesh.sidecars;
  return scopeOf(mesh, { role: "sidecar", namespace, sidecar: first === undefined ? "" : objectKey(first) });
}

/** `host:ports` of all services in scope. */
function reached(yaml: string, ...egress: readonly object[]): readonly string[] {
  return namesOf(scope(meshOf(SERVICES + yaml + sidecar(...egress))).services.list);
}

function namesOf(services: readonly { readonly hostname: string; readonly ports: readonly { port: number }[] }[]) {
  return services
    .map(({ hostname, ports }) => `${hostname.replace(".svc.cluster.local", "")}:${ports.map(({ port }) => port)}`)
    .sort();
}

test("routes lead to services of the own namespace that it does not see itself", () => {
  const ports = [{ number: 80, name: "http", protocol: "HTTP" }];
  const entry = (where: string, host: string) =>
    object("ServiceEntry", where, { hosts: [host], ports, resolution: "DNS", exportTo: ["test"] });
  const route = { hosts: ["a.com"], http: [{ route: [{ destination: { host: "hidden.com" } }] }] };
  const yaml = entry("prod/h", "hidden.com") + entry("prod/o", "other.com") + object("VirtualService", "prod/v", route);
  const scoped = scope(meshOf(yaml));
  assert.deepEqual(namesOf(scoped.services.list), ["hidden.com:80"]);
  assert.deepEqual(namesOf(scoped.listeners[0]?.services ?? []), []);
});

test("without a Sidecar, or with one that does not speak of egress, everything is in scope", () => {
  const all = ["db.prod:5432", "only.test:80", "web.prod:80,9090", "web.test:80"];
  assert.deepEqual(namesOf(scope(meshOf(SERVICES)).services.list), all);
  const inbound = object("Sidecar", "prod/own", { inboundConnectionPool: { tcp: { maxConnections: 1 } } });
  assert.deepEqual(namesOf(scope(meshOf(SERVICES + inbound)).services.list), all);
});

test("hosts are imported by namespace and name", () => {
  assert.deepEqual(reached("", { hosts: ["./*"] }), ["db.prod:5432", "web.prod:80,9090"]);
  assert.deepEqual(reached("", { hosts: ["test/*"] }), ["only.test:80", "web.test:80"]);
  assert.deepEqual(reached("", { hosts: ["*/web.test.svc.cluster.local"] }), ["web.test:80"]);
  assert.deepEqual(reached("", { hosts: ["prod/web.test.svc.cluster.local"] }), []);
  assert.deepEqual(reached("", { hosts: ["*/*.prod.svc.cluster.local"] }), ["db.prod:5432", "web.prod:80,9090"]);
  assert.deepEqual(reached("", { hosts: ["~/*"] }), []);
});

test("a listener with a port sees that port of its services, and all listeners together their union", () => {
  const port = { number: 9090, protocol: "HTTP", name: "admin" };
  assert.deepEqual(reached("", { port, hosts: ["./*"] }), ["web.prod:9090"]);
  const web = "./web.prod.svc.cluster.local";
  assert.deepEqual(reached("", { port, hosts: ["./*"] }, { hosts: [web, "test/only.test.svc.cluster.local"] }), [
    "only.test:80",
    "web.prod:9090,80",
  ]);
  const proxy = { number: 3128, protocol: "HTTP_PROXY", name: "proxy" };
  assert.deepEqual(reached("", { port: proxy, hosts: [web] }), ["web.prod:80,9090"]);
});

test("destinations of imported virtual services are in scope too, with the ports that they name", () => {
  const routes = (destination: object, more: object = {}) =>
    object("VirtualService", "prod/web", { hosts: ["web"], http: [{ route: [{ destination }] }], ...more });
  const hosts = ["./web.prod.svc.cluster.local"];
  const onlyTest = { host: "only.test.svc.cluster.local" };
  assert.deepEqual(reached(routes(onlyTest), { hosts }), ["only.test:80", "web.prod:80,9090"]);
  assert.deepEqual(reached(routes(onlyTest, { exportTo: ["test"] }), { hosts }), ["web.prod:80,9090"]);
  assert.deepEqual(reached(routes({ ...onlyTest, port: { number: 81 } }), { hosts }), ["web.prod:80,9090"]);
  const mirror = [{ route: [{ destination: { host: "web" } }], mirrors: [{ destination: onlyTest }] }];
  assert.deepEqual(reached(routes(onlyTest, { http: mirror }), { hosts }), ["only.test:80", "web.prod:80,9090"]);
  const forOthers = [{ match: [{ sourceNamespace: "test" }], route: [{ destination: onlyTest }] }];
  assert.deepEqual(reached(routes(onlyTest, { http: forOthers }), { hosts }), ["web.prod:80,9090"]);
});

test("a virtual service counts when one of its hosts could be an imported one", () => {
  const virtualService = (host: string) =>
    object("VirtualService", "prod/v", { hosts: [host], http: [{ route: [{ destination: { host: "web" } }] }] });
  const seen = (host: string, imported: string) => {
    const [listener] = scope(meshOf(SERVICES + virtualService(host) + sidecar({ hosts: [imported] }))).listeners;
    return listener?.virtualServices.length === 1;
  };
  assert.equal(seen("web", "./web.prod.svc.cluster.local"), true);
  assert.equal(seen("*.prod.svc.cluster.local", "./web.prod.svc.cluster.local"), true);
  assert.equal(seen("web", "./*.svc.cluster.local"), true);
  assert.equal(seen("web", "./db.prod.svc.cluster.local"), false);
  assert.equal(seen("web", "test/*"), false);
});

test("a change elsewhere leaves the lists of a scope as they are", () => {
  const yaml = SERVICES + sidecar({ hosts: ["./*"] });
  const mesh = meshOf(yaml);
  const other = object("VirtualService", "test/v", { hosts: ["a.com"], http: [{ redirect: { uri: "/" } }] });
  const [before, after] = [scope(mesh), scope(meshOf(yaml + other, { previous: mesh }))];
  assert.equal(after.services, before.services);
  assert.equal(after.listeners[0]?.services, before.listeners[0]?.services);
});
