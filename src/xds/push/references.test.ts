import assert from "node:assert/strict";
import { test } from "node:test";
import { meshOf } from "../../../test/support/mesh.ts";
import { hasNewUnresolved, unresolvedReferences } from "./references.ts";

const unresolved = (yaml: string) => [...unresolvedReferences(meshOf(yaml))];
const route = (destination: string, more = "") => `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: vs, namespace: ns}
spec: {hosts: [x.example.com], ${more} http: [{route: [{destination: ${destination}}]}]}
---
`;
const SERVICE = `
apiVersion: v1
kind: Service
metadata: {name: a, namespace: ns}
spec: {ports: [{port: 80, name: http}]}
---
`;

test("unresolvedReferences() tells hosts, subsets and gateways that do not exist", () => {
  assert.deepEqual(unresolved(route("{host: a, subset: v1}", "gateways: [mesh, gw, other/gw],")), [
    "VirtualService/ns/vs gateway ns/gw",
    "VirtualService/ns/vs gateway other/gw",
    "VirtualService/ns/vs host a.ns.svc.cluster.local",
    "VirtualService/ns/vs subset a.ns.svc.cluster.local v1",
  ]);
});

test("unresolvedReferences() finds hosts by short and full name, and wildcard hosts", () => {
  assert.deepEqual(unresolved(`${SERVICE}${route("{host: a}")}`), []);
  assert.deepEqual(unresolved(`${SERVICE}${route("{host: a.ns.svc.cluster.local}")}`), []);
  const wildcard = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: w}
spec: {hosts: ["*.example.com"], ports: [{number: 80, name: http, protocol: HTTP}], resolution: NONE}
---
`;
  assert.deepEqual(unresolved(`${wildcard}${route("{host: b.example.com}")}`), []);
});

test("unresolvedReferences() finds subsets and gateways in other objects", () => {
  const others = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: a, namespace: ns}
spec: {host: a, subsets: [{name: v1}]}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: gw, namespace: ns}
spec: {selector: {a: b}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}
---
`;
  for (const name of ["gw", "ns/gw", "gw.ns", "gw.ns.svc.cluster.local"]) {
    assert.deepEqual(unresolved(SERVICE + others + route("{host: a, subset: v1}", `gateways: [${name}],`)), [], name);
  }
});

test("unresolvedReferences() looks at mirrors and at TCP and TLS routes", () => {
  const yaml = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: vs, namespace: ns}
spec:
  hosts: [x.example.com]
  http:
  - {directResponse: {status: 200}, mirror: {host: m1.x}}
  - {directResponse: {status: 200}, mirrors: [{destination: {host: m2.x}}]}
  tcp: [{route: [{destination: {host: t.x}}]}]
  tls: [{match: [{sniHosts: [x.example.com]}], route: [{destination: {host: s.x}}]}]
`;
  assert.deepEqual(
    unresolved(yaml)
      .map((text) => text.split(" ").at(-1))
      .sort(),
    ["m1.x", "m2.x", "s.x", "t.x"],
  );
});

test("hasNewUnresolved() tells what leads nowhere now and did not before", () => {
  const gateway = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: gw, namespace: ns}
spec: {selector: {a: b}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}
---
`;
  const [known, unknown] = [SERVICE + route("{host: a}"), SERVICE + route("{host: b}")];
  const isNew = (before: string, after: string) => {
    const previous = meshOf(before);
    return hasNewUnresolved(previous, meshOf(after, { previous }));
  };
  assert.equal(hasNewUnresolved(undefined, meshOf(known)), false);
  assert.equal(hasNewUnresolved(undefined, meshOf(unknown)), true);
  // By another object, with the same targets and with more of them.
  assert.equal(isNew(known, unknown), true);
  assert.equal(isNew(known, unknown + gateway), true);
  assert.equal(isNew(unknown, known), false);
  // It is another route, and the same that is missing.
  assert.equal(isNew(unknown, SERVICE + route("{host: b, port: {number: 80}}")), false);
  // The routes are the same, and what they lead to went.
  assert.equal(isNew(known, route("{host: a}")), true);
  assert.equal(isNew(known + gateway, known), false);
  assert.equal(isNew(unknown, `${unknown}${gateway}`), false);
});
