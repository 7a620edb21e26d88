import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service } from "#model/service/service.ts";
import { meshOf } from "../../../test/support/mesh.ts";
import { object } from "../../../test/support/objects.ts";
import { serviceAddresses } from "./addresses.ts";

function serviceOf(yaml: string): Service {
  const [service] = meshOf(yaml).services;
  assert.ok(service);
  return service;
}
const ports = [{ name: "tcp", port: 90 }];
const both = serviceOf(object("Service", "a", { clusterIP: "10.96.0.1", clusterIPs: ["10.96.0.1", "fd00::1"], ports }));
const entry = (addresses: string[]) =>
  serviceOf(
    object("ServiceEntry", "e", {
      hosts: ["e.example.com"],
      addresses,
      ports: [{ number: 90, name: "tcp", protocol: "TCP" }],
      resolution: "DNS",
    }),
  );

const NARROW = { ipMode: "ipv4", dualStack: false } as const;

test("a Kubernetes service has addresses of the proxy's families", () => {
  const addresses = (ipMode: "ipv4" | "ipv6" | "dual", dualStack = false) =>
    serviceAddresses(both, { ipMode, dualStack, autoAddresses: false });
  assert.deepEqual(addresses("ipv4"), ["10.96.0.1"]);
  assert.deepEqual(addresses("ipv6"), ["fd00::1"]);
  assert.deepEqual(addresses("dual"), ["10.96.0.1"]);
  assert.deepEqual(addresses("dual", true), ["10.96.0.1", "fd00::1"]);
});

test("a service of another family is still called by its address", () => {
  const v4 = serviceOf(object("Service", "a", { clusterIP: "10.96.0.1", ports }));
  assert.deepEqual(serviceAddresses(v4, { ...NARROW, ipMode: "ipv6", autoAddresses: false }), ["10.96.0.1"]);
});

test("a ServiceEntry has the addresses it names, and the allocated one only without any", () => {
  assert.deepEqual(serviceAddresses(entry(["10.1.1.1", "fd00::1"]), { ...NARROW, autoAddresses: true }), [
    "10.1.1.1",
    "fd00::1",
  ]);
  assert.deepEqual(serviceAddresses(entry([]), { ...NARROW, autoAddresses: false }), []);
  assert.equal(serviceAddresses(entry([]), { ...NARROW, autoAddresses: true }).length, 1);
});
