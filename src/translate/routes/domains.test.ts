import assert from "node:assert/strict";
import { test } from "node:test";
import { meshOf } from "../../../test/support/mesh.ts";
import { object } from "../../../test/support/objects.ts";
import { serviceDomains } from "./domains.ts";

const IPV4 = { ipMode: "ipv4", dualStack: false, autoAddresses: false } as const;
function domains(yaml: string, dnsDomain = "default.svc.cluster.local") {
  const [service] = meshOf(yaml).services;
  assert.ok(service);
  return serviceDomains(service, dnsDomain, IPV4).all;
}
const kubernetes = (clusterIP: string) => object("Service", "web", { clusterIP, ports: [{ name: "http", port: 80 }] });
const external = (host: string, spec: object = {}) =>
  object("ServiceEntry", "e", {
    hosts: [host],
    ports: [{ number: 80, name: "http", protocol: "HTTP" }],
    resolution: "NONE",
    ...spec,
  });

test("a service is called by its address and by names that are short in its own namespace", () => {
  assert.deepEqual(domains(kubernetes("10.96.0.1")), [
    "web.default.svc.cluster.local",
    "web.default.svc.cluster.local.",
    "web",
    "web.default.svc",
    "web.default",
    "10.96.0.1",
  ]);
  assert.deepEqual(domains(kubernetes("10.96.0.1"), "other.svc.cluster.local"), [
    "web.default.svc.cluster.local",
    "web.default.svc.cluster.local.",
    "web.default",
    "web.default.svc",
    "10.96.0.1",
  ]);
});

test("pods of a headless service are called by names in front of it", () => {
  const names = domains(kubernetes("None"));
  assert.ok(names.includes("*.web.default.svc.cluster.local"));
  assert.ok(names.includes("*.web"));
});

test("a host outside is called by its name, and by its last address", () => {
  assert.deepEqual(domains(external("a.example.com", { addresses: ["10.1.1.1", "10.1.1.2"] })), [
    "a.example.com",
    "a.example.com.",
    "10.1.1.2",
  ]);
});

test("a host with allocated addresses of both families is called by the first, by both where any port is meant", () => {
  const [service] = meshOf(external("a.example.com", { resolution: "DNS" })).services;
  assert.ok(service?.autoAddress && service.autoAddress6);
  const traits = { ipMode: "dual", dualStack: true, autoAddresses: true } as const;
  const { all } = serviceDomains(service, "", traits);
  assert.deepEqual(all.slice(-1), [service.autoAddress]);
  assert.ok(!all.some((name) => name.startsWith("[")));
  const ofAnyPort = serviceDomains(service, "", { ...traits, anyPort: true }).all;
  assert.deepEqual(ofAnyPort.slice(-2), [service.autoAddress, `[${service.autoAddress6}]`]);
});

test("outside Kubernetes names are shortened by what they share with the proxy's domain", () => {
  assert.deepEqual(domains(external("web.prod.example.com"), "dev.example.com"), [
    "web.prod.example.com",
    "web.prod.example.com.",
    "web.prod",
    "web.prod.example",
  ]);
  assert.deepEqual(domains(external("web.example.org"), "dev.example.com"), ["web.example.org", "web.example.org."]);
});

test("a wildcard stays one", () => {
  assert.deepEqual(domains(external("*.example.com")), ["*.example.com", "*.example.com."]);
});
