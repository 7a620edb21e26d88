import assert from "node:assert/strict";
import test from "node:test";
import { meshOf } from "../../../test/support/mesh.ts";
import { pagesOf } from "./pages.ts";

const GATEWAY = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {selector: {istio: edge}, servers: [{port: {number: 8080, name: http, protocol: HTTP}, hosts: ["*"]}]}
`;
const ROUTES = `---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: page, namespace: shop}
spec:
  hosts: ["*"]
  gateways: [edge]
  http: [{match: [{uri: {exact: /page}}, {uri: {prefix: /static}}], route: [{destination: {host: web}}]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: api, namespace: other}
spec:
  hosts: [api.example.com]
  gateways: [shop/edge]
  http: [{route: [{destination: {host: api}}]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: inside, namespace: other}
spec: {hosts: [api], http: [{route: [{destination: {host: api}}]}]}
`;
const EDGE = { proxy: "router", labels: { istio: "edge", more: "x" } } as const;

test("pagesOf() finds a page for each host of the routes behind a gateway's port", () => {
  assert.deepEqual(pagesOf(meshOf(GATEWAY + ROUTES), EDGE, 8080), [
    { host: "api.example.com", path: "/" },
    { host: "*", path: "/page" },
  ]);
});

test("pagesOf() knows a gateway by all of its names", () => {
  for (const name of ["edge", "shop/edge", "edge.shop", "edge.shop.svc.cluster.local"]) {
    const routes = ROUTES.replace("gateways: [edge]", `gateways: [${name}]`);
    assert.equal(pagesOf(meshOf(GATEWAY + routes), EDGE, 8080).length, 2, name);
  }
});

test("pagesOf() has nothing for another port, another proxy, or a workload", () => {
  const mesh = meshOf(GATEWAY + ROUTES);
  assert.deepEqual(pagesOf(mesh, EDGE, 8443), []);
  assert.deepEqual(pagesOf(mesh, { ...EDGE, labels: { istio: "other" } }, 8080), []);
  assert.deepEqual(pagesOf(mesh, { ...EDGE, proxy: "sidecar" }, 8080), []);
  assert.deepEqual(pagesOf(meshOf(GATEWAY.replace("protocol: HTTP", "protocol: TCP") + ROUTES), EDGE, 8080), []);
});
