import assert from "node:assert/strict";
import { test } from "node:test";
import { meshOf, type ProxyOptions, proxyOf } from "../../../test/support/mesh.ts";
import { object, service, workload } from "../../../test/support/objects.ts";
import { viewsOf } from "../views/views.ts";
import { routerServers } from "./gateways.ts";

const server = (number: number, protocol: string, hosts: string[], more: object = {}) => ({
  port: { number, name: `${protocol.toLowerCase()}-${number}`, protocol },
  hosts,
  ...more,
});
const gateway = (where: string, servers: object[], createdAt = "2024-01-01T00:00:00Z") =>
  object("Gateway", where, { servers }, { creationTimestamp: createdAt });
const certificate = { serverCertificate: "/cert.pem", privateKey: "/key.pem" };
const simple = { tls: { mode: "SIMPLE", ...certificate } };
const passthrough = { tls: { mode: "PASSTHROUGH" } };

function serversOf(yaml: string, options: ProxyOptions = {}) {
  const view = viewsOf(meshOf(yaml), proxyOf({ type: "router", ...options })).gateway;
  assert.ok(view);
  return routerServers(view);
}
const ports = (...args: Parameters<typeof serversOf>) =>
  serversOf(...args).ports.map(({ port, protocol, servers }) => `${port} ${protocol} ${servers.length}`);

test("plain HTTP servers of several Gateways share a port and its routes", () => {
  const yaml = gateway("a", [server(80, "HTTP", ["a.com"])]) + gateway("b", [server(80, "HTTP2", ["b.com"])]);
  const { ports, byRouteName } = serversOf(yaml);
  assert.equal(ports.length, 1);
  assert.deepEqual(
    byRouteName.get("http.80")?.map(({ gateway }) => gateway),
    ["default/a", "default/b"],
  );
});

test("HTTPS servers of a port each have routes of their own", () => {
  const yaml = gateway("a", [server(443, "HTTPS", ["a.com"], simple)]);
  const other = gateway("b", [server(443, "HTTPS", ["b.com"], simple)]);
  assert.deepEqual(
    [...serversOf(yaml + other).byRouteName.keys()],
    ["https.443.https-443.a.default", "https.443.https-443.b.default"],
  );
});

test("a server name that is taken on a port is left out, the oldest Gateway keeps it", () => {
  const young = gateway("young", [server(443, "HTTPS", ["a.com", "b.com"], simple)]);
  const old = gateway("old", [server(443, "TLS", ["a.com"], passthrough)], "2020-01-01T00:00:00Z");
  assert.deepEqual(ports(young + old), ["443 TLS 1"]);
});

test("plain text and TLS do not share a port", () => {
  const plain = gateway("plain", [server(443, "TCP", ["*"])], "2020-01-01T00:00:00Z");
  assert.deepEqual(ports(plain + gateway("tls", [server(443, "TLS", ["*"], passthrough)])), ["443 TCP 1"]);
  assert.deepEqual(ports(plain + gateway("http", [server(443, "HTTP", ["*"])])), ["443 TCP 1"]);
});

test("one port on several addresses is several ports", () => {
  const yaml = gateway("a", [
    server(80, "HTTP", ["*"]),
    { ...server(80, "HTTP", ["*"], { bind: "10.0.0.9" }), port: { number: 80, name: "own", protocol: "HTTP" } },
  ]);
  assert.deepEqual([...serversOf(yaml).byRouteName.keys()], ["http.80", "http.80.10.0.0.9"]);
});

test("hosts can be bound to a namespace", () => {
  const hosts = (...given: string[]) =>
    serversOf(gateway("ns/a", [server(80, "HTTP", given)])).ports[0]?.servers[0]?.hosts;
  assert.deepEqual(hosts("./a.com", "*/b.com", "other/c.com", "d.com"), ["ns/a.com", "b.com", "other/c.com", "d.com"]);
  assert.deepEqual(hosts("a.com", "*/*"), ["*"]);
  assert.deepEqual(hosts("a.com", "*"), ["a.com", "*"]);
});

test("a server with one host of TLS that another has is left out as a whole", () => {
  const tls = (name: string, ...hosts: string[]) =>
    server(443, "HTTPS", hosts, { port: { number: 443, name, protocol: "HTTPS" }, ...simple });
  const servers = [tls("one", "*.a.com", "*"), tls("two", "x.a.com", "*.a.com"), tls("three", "x.a.com")];
  const names = serversOf(gateway("a", servers)).ports[0]?.servers.map((one) => one.server.port.name);
  assert.deepEqual(names, ["one", "three"]);
});

test("the router's own service tells on which port it listens", () => {
  const own =
    service("in", { name: "http", port: 80, targetPort: 8080 }) +
    workload("in-1", "10.0.0.1", { labels: { app: "in" } });
  assert.deepEqual(ports(own + gateway("a", [server(80, "HTTP", ["*"])])), ["8080 HTTP 1"]);
});

test("an unprivileged router has no low ports", () => {
  const yaml = gateway("a", [server(80, "HTTP", ["*"]), server(8080, "HTTP", ["*"])]);
  assert.deepEqual(ports(yaml, { metadata: { UNPRIVILEGED_POD: "true" } }), ["8080 HTTP 1"]);
});
