import assert from "node:assert/strict";
import { test } from "node:test";
import { objectsOf } from "../../../test/support/mesh.ts";
import { readMesh } from "../mesh/read-mesh.ts";
import { hintsOf } from "./hints.ts";

const MESH = `
apiVersion: mizzen.dev/v1alpha1
kind: Mesh
metadata: {name: shop}
spec:
  workloads:
  - {name: web, labels: {app: web}, command: [sleep, infinity], ports: [80]}
`;

function hints(objects: string): readonly string[] {
  const { mesh } = readMesh({ text: MESH, file: "/shop/mesh.yaml" });
  assert.ok(mesh);
  return hintsOf({ members: mesh.members, objects: objectsOf(objects), file: "mesh.yaml", lines: {} });
}

const entry = (app: string) => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: default}
spec:
  hosts: [web.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  workloadSelector: {labels: {app: ${app}}}
`;

test("hintsOf() tells of a workload that nobody can call by a name", () => {
  assert.match(hints("").join(), /workload "web" is selected by no Service/);
  assert.match(hints(entry("other")).join(), /workload "web" is selected by no Service/);
});

test("hintsOf() says nothing of a workload that a ServiceEntry selects", () => {
  assert.deepEqual(hints(entry("web")), []);
});

const routes = (destination: string, gateways = "") => `${entry("web")}---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: default}
spec:
  hosts: [web.example.com]
  ${gateways}
  http: [{route: [{destination: ${destination}}]}]
`;

test("hintsOf() tells of routes that lead to what does not exist, and where they are written", () => {
  assert.deepEqual(hints(routes("{host: webb.example.com}")), [
    'test.yaml:11: VirtualService/default/web: host "webb.example.com" does not exist: requests that are sent there fail',
  ]);
  assert.match(hints(routes("{host: web.example.com, subset: v1}")).join(), /subset "v1" of "web.example.com"/);
  assert.match(hints(routes("{host: web.example.com, port: {number: 81}}")).join(), /port 81 of "web.example.com"/);
  assert.match(hints(routes("{host: web.example.com}", "gateways: [front]")).join(), /gateway "front" does not exist/);
  assert.deepEqual(hints(routes("{host: web.example.com}")), []);
});
