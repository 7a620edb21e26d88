import assert from "node:assert/strict";
import { test } from "node:test";
import { finished } from "#lib/async/steps.ts";
import { meshOf, objectsOf } from "../../../test/support/mesh.ts";
import { conflictText } from "./conflict.ts";
import { conflictSteps } from "./conflicts.ts";

function object(kind: string, name: string, spec: object, namespace = "default"): string {
  return `${JSON.stringify({ apiVersion: "networking.istio.io/v1", kind, metadata: { name, namespace }, spec })}\n---\n`;
}

function texts(...objects: readonly string[]): readonly string[] {
  const yaml = objects.join("");
  const found = finished(conflictSteps(meshOf(yaml), objectsOf(yaml)));
  return found.flatMap(({ conflicts }) => conflicts).map(conflictText);
}

const http = [{ route: [{ destination: { host: "a" } }] }];

test("two VirtualServices for one host are named both, however the host is written", () => {
  const found = texts(
    object("VirtualService", "one", { hosts: ["a"], http }),
    object("VirtualService", "two", { hosts: ["a.default.svc.cluster.local", "b"], http }),
  );
  assert.equal(found.length, 1);
  assert.match(
    found[0] ?? "",
    /^VirtualService\/default\/two: host "a\.default.* is taken by VirtualService\/default\/one:/,
  );
});

test("VirtualServices that nobody sees together, and those of gateways, are no conflict", () => {
  const own = { hosts: ["a.example.com"], http, exportTo: ["."] };
  const gateway = { hosts: ["a.example.com"], http, gateways: ["gw"] };
  assert.deepEqual(texts(object("VirtualService", "one", own), object("VirtualService", "two", own, "other")), []);
  assert.deepEqual(texts(object("VirtualService", "one", gateway), object("VirtualService", "two", gateway)), []);
  assert.equal(
    texts(object("VirtualService", "one", own), object("VirtualService", "two", { ...own, exportTo: ["*"] }, "other"))
      .length,
    1,
  );
});

test("of objects of one moment the first by name has what several claim, whatever its namespace, as in what proxies get", () => {
  const tcp = (name: string) => ({
    hosts: [`${name}.example.com`],
    addresses: ["10.5.5.5"],
    ports: [{ number: 9000, name: "tcp", protocol: "TCP" }],
    resolution: "STATIC",
  });
  const server = (protocol: string) => ({ port: { number: 80, name: "p", protocol }, hosts: ["*"] });
  const found = texts(
    object("VirtualService", "b", { hosts: ["x.example.com"], http }, "aaa"),
    object("VirtualService", "a", { hosts: ["x.example.com"], http }, "zzz"),
    object("Gateway", "b", { selector: { a: "b" }, servers: [server("HTTP")] }, "aaa"),
    object("Gateway", "a", { selector: { a: "b" }, servers: [server("TCP")] }, "zzz"),
    object("ServiceEntry", "b", tcp("b"), "aaa"),
    object("ServiceEntry", "a", tcp("a"), "zzz"),
  );
  const sides = found.map((text) => /^(\S+):.* by (\w+\/\w+\/\w+)/.exec(text)?.slice(1));
  assert.deepEqual(sides, [
    ["VirtualService/aaa/b", "VirtualService/zzz/a"],
    ["Gateway/aaa/b", "Gateway/zzz/a"],
    ["ServiceEntry/aaa/b", "ServiceEntry/zzz/a"],
  ]);
});

test("an empty list of gateways means sidecars, and a default that names neither all nor the own namespace means nobody", () => {
  const [one, two] = ["one", "two"].map((name) =>
    object("VirtualService", name, { hosts: ["x.example.com"], http, gateways: [] }),
  );
  const yaml = `${one}${two}`;
  const found = (mesh: object) =>
    finished(conflictSteps(meshOf(yaml, { mesh }), objectsOf(yaml))).flatMap(({ conflicts }) => conflicts);
  assert.equal(found({}).length, 1);
  assert.equal(found({ defaultVirtualServiceExportTo: ["elsewhere"] }).length, 0);
});

test("a subset of two DestinationRules is named with both", () => {
  const found = texts(
    object("DestinationRule", "one", { host: "a", subsets: [{ name: "v1" }, { name: "v2" }] }),
    object("DestinationRule", "two", { host: "a.default.svc.cluster.local", subsets: [{ name: "v1" }] }),
    object("DestinationRule", "three", { host: "a", subsets: [{ name: "v1" }] }, "other"),
  );
  assert.equal(found.length, 1);
  assert.match(found[0] ?? "", /^DestinationRule\/default\/two: subset "v1" .* by DestinationRule\/default\/one:/);
});

function gateway(name: string, servers: readonly object[], selector: object = { istio: "ingressgateway" }): string {
  return object("Gateway", name, { selector, servers });
}

test("a port of a gateway for two protocols, and a server name that two have", () => {
  const port = (number: number, protocol: string) => ({ number, name: `p${protocol}`, protocol });
  const tls = { mode: "SIMPLE", credentialName: "c" };
  const found = texts(
    gateway("one", [
      { port: port(80, "HTTP"), hosts: ["a.example.com"] },
      { port: port(443, "HTTPS"), hosts: ["a.example.com", "b.example.com"], tls },
    ]),
    gateway("two", [
      { port: port(80, "TCP"), hosts: ["*"] },
      { port: port(443, "HTTPS"), hosts: ["x/b.example.com"], tls },
      { port: port(81, "HTTP"), hosts: ["a.example.com"] },
    ]),
    gateway("three", [{ port: port(80, "HTTP"), hosts: ["a.example.com"] }]),
    gateway("four", [{ port: port(80, "TCP"), hosts: ["*"] }], { istio: "other" }),
  );
  assert.deepEqual(found, [
    "Gateway/default/two: port 80, here for TCP, is taken by Gateway/default/one for HTTP: this server is left out",
    'Gateway/default/two: host "b.example.com" on port 443 is taken by Gateway/default/one: this server is left out',
  ]);
});

function entry(name: string, protocol: string, address: string): string {
  const ports = [{ number: 9000, name: "p", protocol }];
  const endpoints = [{ address: "10.0.0.1" }];
  return object("ServiceEntry", name, {
    hosts: [`${name}.example.com`],
    addresses: [address],
    resolution: "STATIC",
    location: "MESH_INTERNAL",
    ports,
    endpoints,
  });
}

test("an address of two TCP services, and a port of a workload for two protocols", () => {
  const addresses = texts(entry("one", "TCP", "240.0.0.1"), entry("two", "TCP", "240.0.0.1"));
  assert.equal(addresses.length, 1);
  assert.match(
    addresses[0] ?? "",
    /^ServiceEntry\/default\/two: TCP at 240\.0\.0\.1:9000 is taken by ServiceEntry\/default\/one:/,
  );
  const ports = texts(entry("one", "TCP", "240.0.0.1"), entry("two", "HTTP", "240.0.0.2"));
  assert.equal(ports.length, 1);
  assert.match(
    ports[0] ?? "",
    /two: port 9000 of a workload, here for HTTP, is taken by ServiceEntry\/default\/one for TCP:/,
  );
});

test("two ports that lead to one are no conflict where no proxy has to choose: TLS is often begun so", () => {
  const ports = [
    { number: 80, name: "http", protocol: "HTTP", targetPort: 443 },
    { number: 443, name: "https", protocol: "HTTPS" },
  ];
  const host = (spec: object) => object("ServiceEntry", "far", { hosts: ["far.example.com"], ports, ...spec });
  assert.deepEqual(texts(host({ resolution: "DNS" })), []);
  assert.deepEqual(texts(host({ resolution: "DNS", location: "MESH_INTERNAL" })), []);
  const endpoints = [{ address: "192.0.2.1" }];
  assert.deepEqual(texts(host({ resolution: "STATIC", endpoints })), []);
  assert.equal(texts(host({ resolution: "STATIC", endpoints, location: "MESH_INTERNAL" })).length, 1);
});

test("one VirtualService may name a host in two ways", () => {
  const hosts = ["a", "a.default.svc.cluster.local"];
  assert.deepEqual(texts(object("VirtualService", "one", { hosts, http })), []);
});

test("without an address, TCP of any address is one, but not TLS, nor what is headless", () => {
  const anywhere = (name: string, protocol: string, hosts = [`${name}.example.com`]) =>
    object("ServiceEntry", name, { hosts, resolution: "NONE", ports: [{ number: 443, name: "p", protocol }] });
  const [tls, https] = [anywhere("one", "TLS", ["one.test", "*.two.test"]), anywhere("two", "HTTPS")];
  assert.deepEqual(texts(tls, https, anywhere("three", "TCP", ["three.test", "four.test"])), []);
  assert.equal(texts(tls, anywhere("three", "TCP"), anywhere("four", "MONGO")).length, 1);
  const headless = (namespace: string) =>
    `${JSON.stringify({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "db", namespace },
      spec: { clusterIP: "None", ports: [{ name: "tcp", port: 443 }] },
    })}\n---\n`;
  assert.deepEqual(texts(headless("a"), headless("b"), anywhere("three", "TCP")), []);
});

test("ports that an endpoint does not have are no conflict", () => {
  const service = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web" },
    spec: {
      clusterIP: "10.0.0.1",
      ports: [
        { name: "http", port: 80 },
        { name: "tcp", port: 81 },
      ],
    },
  };
  const slice = {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: "web-1", labels: { "kubernetes.io/service-name": "web" } },
    addressType: "IPv4",
    ports: [{ name: "other", port: 8080 }],
    endpoints: [{ addresses: ["10.1.0.1"] }],
  };
  assert.deepEqual(texts(`${JSON.stringify(service)}\n---\n`, JSON.stringify(slice)), []);
});

test("a host that two objects of a namespace define, Kubernetes before others", () => {
  const host = "shop.default.svc.cluster.local";
  const spec = { hosts: [host], ports: [{ number: 80, name: "http", protocol: "HTTP" }], resolution: "DNS" };
  const shop = { apiVersion: "v1", kind: "Service", metadata: { name: "shop" }, spec: { ports: [{ port: 80 }] } };
  const found = texts(
    object("ServiceEntry", "a", spec),
    object("ServiceEntry", "b", spec),
    object("ServiceEntry", "c", spec, "other"),
    `${JSON.stringify(shop)}\n---\n`,
  ).filter((text) => text.includes("host"));
  assert.deepEqual(
    found.map((text) => text.slice(0, text.lastIndexOf(":"))),
    ["a", "b"].map((name) => `ServiceEntry/default/${name}: host "${host}" is taken by Service/default/shop`),
  );
});

test("what did not change is not searched again", () => {
  const gateway = object("VirtualService", "one", { hosts: ["a"], http });
  const [first, second] = [gateway, gateway + object("VirtualService", "two", { hosts: ["a"], http })];
  const before = meshOf(first);
  const after = meshOf(second, { previous: before });
  const found = finished(conflictSteps(before, objectsOf(first)));
  const again = finished(conflictSteps(after, objectsOf(second), found));
  assert.deepEqual(
    again.map((one, i) => one === found[i]),
    [false, true, true, true, true, true],
  );
  assert.deepEqual(again, finished(conflictSteps(after, objectsOf(second))));
});

test("of many services that a workload has for one protocol, each of another conflicts with the first", () => {
  const entry = (name: string, protocol: string) =>
    object("ServiceEntry", name, {
      hosts: [`${name}.example.com`],
      ports: [{ number: 80, name: "p", protocol }],
      resolution: "STATIC",
      location: "MESH_INTERNAL",
      endpoints: [{ address: "10.0.0.1" }],
    });
  const found = texts(entry("a", "HTTP"), entry("b", "HTTP"), entry("c", "TCP"), entry("d", "HTTP"), entry("e", "TCP"));
  const inbound = found.filter((text) => text.includes("of a workload"));
  const owners = inbound.map((text) =>
    [...text.matchAll(/ServiceEntry\/default\/(\w)/g)].map(([, name]) => name).join(" by "),
  );
  assert.deepEqual(owners, ["c by a", "d by c", "e by a"]);
});
