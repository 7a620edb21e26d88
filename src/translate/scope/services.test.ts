import assert from "node:assert/strict";
import { test } from "node:test";
import { meshOf } from "../../../test/support/mesh.ts";
import { object, service } from "../../../test/support/objects.ts";
import { servicesOfHost, visibleServices } from "./services.ts";

const HOST = "shared.example.com";
const entry = (where: string, spec: object = {}, metadata: object = {}) => {
  const ports = [{ number: 80, name: "http", protocol: "HTTP" }];
  return object("ServiceEntry", where, { hosts: [HOST], ports, resolution: "DNS", ...spec }, metadata);
};
const chosen = (yaml: string, namespace = "default", role: "sidecar" | "router" = "sidecar") =>
  visibleServices(meshOf(yaml), { role, namespace }).byHost.get(HOST);

test("a sidecar takes the declaration of its own namespace, a router the oldest", () => {
  const yaml =
    entry("a/one", {}, { creationTimestamp: "2020-01-01T00:00:00Z" }) +
    entry("b/two", {}, { creationTimestamp: "2021-01-01T00:00:00Z" });
  assert.equal(chosen(yaml, "b")?.namespace, "b");
  assert.equal(chosen(yaml, "c")?.namespace, "a");
  assert.equal(chosen(yaml, "b", "router")?.namespace, "a");
});

test("a declaration of the own namespace comes in its own turn, not in that of the one it replaces", () => {
  const other = { hosts: ["middle.example.com"] };
  const yaml =
    entry("a/one", {}, { creationTimestamp: "2020-01-01T00:00:00Z" }) +
    entry("a/two", other, { creationTimestamp: "2021-01-01T00:00:00Z" }) +
    entry("b/three", {}, { creationTimestamp: "2022-01-01T00:00:00Z" });
  const order = (namespace: string) =>
    visibleServices(meshOf(yaml), { role: "sidecar", namespace }).list.map(({ hostname }) => hostname);
  assert.deepEqual(order("b"), ["middle.example.com", HOST]);
  assert.deepEqual(order("a"), [HOST, "middle.example.com"]);
});

test("a ServiceEntry cannot take the name of a Kubernetes service of another namespace", () => {
  const hosts = ["web.prod.svc.cluster.local"];
  const yaml =
    entry("evil/web", { hosts }, { creationTimestamp: "2020-01-01T00:00:00Z" }) +
    service("prod/web", { name: "http", port: 80 });
  const found = visibleServices(meshOf(yaml), { role: "sidecar", namespace: "default" }).byHost.get(hosts[0] ?? "");
  assert.equal(found?.registry, "Kubernetes");
});

test("without unified scopes a sidecar takes whichever comes first, its own namespace before", () => {
  const hosts = ["web.prod.svc.cluster.local"];
  const yaml =
    entry("other/web", { hosts }, { creationTimestamp: "2020-01-01T00:00:00Z" }) +
    object("Service", "prod/web", { ports: [{ port: 80 }] }, { creationTimestamp: "2021-01-01T00:00:00Z" });
  const mesh = meshOf(yaml, { features: { unifiedScope: false } });
  const found = (role: "sidecar" | "router", namespace: string) =>
    visibleServices(mesh, { role, namespace }).byHost.get(hosts[0] ?? "")?.namespace;
  assert.equal(found("sidecar", "default"), "other");
  assert.equal(found("sidecar", "prod"), "prod");
  assert.equal(found("router", "default"), "prod");
});

test("what is exported to few is taken before what is exported to all", () => {
  const yaml =
    entry("a/public", {}, { creationTimestamp: "2020-01-01T00:00:00Z" }) +
    entry("b/private", { exportTo: ["c"] }, { creationTimestamp: "2021-01-01T00:00:00Z" });
  assert.equal(chosen(yaml, "c")?.namespace, "b");
  assert.equal(chosen(yaml, "d")?.namespace, "a");
});

test("two entries of a namespace join their ports and addresses, if they are of one kind", () => {
  const more = { ports: [{ number: 443, name: "tls", protocol: "TLS" }], addresses: ["10.1.1.2"] };
  const joined = chosen(entry("a", { addresses: ["10.1.1.1"] }) + entry("b", more));
  assert.deepEqual(
    joined?.ports.map(({ port }) => port),
    [80, 443],
  );
  assert.deepEqual(joined?.addresses, ["10.1.1.1", "10.1.1.2"]);
  const other = { ...more, resolution: "STATIC", endpoints: [{ address: "10.2.0.1" }] };
  assert.deepEqual(
    chosen(entry("a") + entry("b", other))?.ports.map(({ port }) => port),
    [80],
  );
});

test("a joined service is the same object as long as its parts are", () => {
  const mesh = meshOf(entry("a") + entry("b", { ports: [{ number: 443, name: "tls", protocol: "TLS" }] }));
  const find = (services: typeof mesh.services) =>
    visibleServices({ ...mesh, services }, { role: "sidecar", namespace: "default" }).byHost.get(HOST);
  assert.equal(find(mesh.services)?.ports.length, 2);
  assert.equal(find(mesh.services), find([...mesh.services]));
});

test("servicesOfHost() gives one per namespace, Kubernetes services first, whoever may see them", () => {
  const hosts = ["web.default.svc.cluster.local"];
  const mesh = meshOf(
    entry("default/web", { hosts, exportTo: ["~"] }) +
      entry("other/web", { hosts, exportTo: ["~"] }) +
      service("web", { name: "http", port: 80 }),
  );
  const found = servicesOfHost(mesh, hosts[0] ?? "");
  assert.deepEqual([...found.keys()].sort(), ["default", "other"]);
  assert.equal(found.get("default")?.registry, "Kubernetes");
  assert.equal(servicesOfHost(mesh, "unknown").size, 0);
});
