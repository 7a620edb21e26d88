import assert from "node:assert/strict";
import { test } from "node:test";
import { parseObject } from "./parse-object.ts";

const times = <T>(count: number, make: (i: number) => T) => Array.from({ length: count }, (_, i) => make(i));
const problemsOf = (kind: string, spec: object) =>
  parseObject({ apiVersion: "networking.istio.io/v1", kind, metadata: { name: "x" }, spec }).problems.map(
    ({ field, message }) => `${field} ${message}`,
  );
const TO_A = { route: [{ destination: { host: "a.com" } }] };
const virtualService = (hosts: number, routes: number) =>
  problemsOf("VirtualService", {
    hosts: times(hosts, (i) => `h${i}.com`),
    http: times(routes, (i) => ({ match: [{ uri: { exact: `/${i}` } }], ...TO_A })),
  });

test("a virtual service may have many hosts or many routes, but not the product of both", () => {
  assert.deepEqual(virtualService(50, 500), []);
  assert.deepEqual(virtualService(1, 5_000), []);
  assert.match(virtualService(1_000, 1_000).join(), /^spec\.hosts would expand to about \d+ MiB for each proxy/);
});

test("a route may have many matches or a large body, but not the product of both", () => {
  const route = (matches: number, bytes: number) => ({
    match: times(matches, (i) => ({ uri: { exact: `/${i}` } })),
    directResponse: { status: 200, body: { string: "x".repeat(bytes) } },
  });
  const found = (http: object) => problemsOf("VirtualService", { hosts: ["a.com"], http: [TO_A_FIRST, http] });
  assert.deepEqual(found(route(1_000, 1_000)), []);
  assert.match(found(route(1_000, 50_000)).join(), /^spec\.http\[1\] would expand to about 48 MiB/);
});
const TO_A_FIRST = { match: [{ uri: { exact: "/first" } }], ...TO_A };

test("a service entry may have many hosts, ports, endpoints or addresses, but not their products", () => {
  const entry = (amounts: { hosts?: number; ports?: number; endpoints?: number; addresses?: number }) => {
    const { hosts = 1, ports = 1, endpoints = 1, addresses = 1 } = amounts;
    return problemsOf("ServiceEntry", {
      hosts: times(hosts, (i) => `h${i}.com`),
      ports: times(ports, (i) => ({ number: i + 1, name: `p${i}`, protocol: "HTTP" })),
      endpoints: times(endpoints, (i) => ({ address: `10.0.${i >> 8}.${i & 255}` })),
      addresses: times(addresses, (i) => `10.1.${i >> 8}.${i & 255}`),
      resolution: "STATIC",
    });
  };
  assert.deepEqual(entry({ hosts: 100, ports: 2, endpoints: 100 }), []);
  assert.deepEqual(entry({ endpoints: 10_000 }), []);
  assert.match(entry({ hosts: 1_000, endpoints: 1_000 }).join(), /^spec\.hosts would expand to 1000000 entries/);
  assert.match(entry({ hosts: 200, ports: 200 }).join(), /^spec\.hosts would expand/);
  assert.match(entry({ ports: 200, addresses: 200 }).join(), /^spec\.addresses would expand to 40000 listeners/);
});

test("a destination rule may have many subsets or a large policy, but not the product of both", () => {
  const rule = (subsets: number, names: number) =>
    problemsOf("DestinationRule", {
      host: "a",
      trafficPolicy: { tls: { mode: "SIMPLE", subjectAltNames: times(names, (i) => `name-${i}`) } },
      subsets: times(subsets, (i) => ({ name: `s${i}`, labels: { version: `v${i}` } })),
    });
  assert.deepEqual(rule(100, 100), []);
  assert.match(rule(1_000, 1_000).join(), /^spec\.subsets would expand/);
});
