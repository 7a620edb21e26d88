import assert from "node:assert/strict";
import { test } from "node:test";
import {
  configPath,
  gatewayRouteName,
  gatewayServerRouteName,
  inboundCluster,
  outboundCluster,
  outboundServerName,
  parseClusterName,
  virtualHostName,
} from "./names.ts";

test("parseClusterName() reads names of clusters of both directions", () => {
  for (const { direction, port, subset, hostname } of [
    { direction: "outbound", port: 8000, subset: "v1", hostname: "httpbin.default.svc.cluster.local" },
    { direction: "outbound", port: 443, subset: "", hostname: "*.example.com" },
  ] as const) {
    const parts = { direction, port, subset, hostname, isServerName: false };
    assert.deepEqual(parseClusterName(outboundCluster(hostname, port, subset)), parts);
  }
  const inbound = { direction: "inbound", port: 80, subset: "", hostname: "", isServerName: false };
  assert.deepEqual(parseClusterName(inboundCluster(80)), inbound);
});

test("parseClusterName() reads server names", () => {
  assert.deepEqual(parseClusterName(outboundServerName("reviews.default.svc.cluster.local", 9080, "v1")), {
    direction: "outbound",
    port: 9080,
    subset: "v1",
    hostname: "reviews.default.svc.cluster.local",
    isServerName: true,
  });
  assert.equal(parseClusterName("outbound_.x_._.a.b"), undefined);
});

test("parseClusterName() knows which names are no service's", () => {
  for (const name of [
    "",
    "PassthroughCluster",
    "outbound|x||host",
    "outbound|80|host",
    "sideways|80||host",
    "outbound|80||a|b",
  ]) {
    assert.equal(parseClusterName(name), undefined, name);
  }
});

test("names are those of Istio", () => {
  assert.equal(outboundCluster("a.b", 80), "outbound|80||a.b");
  assert.equal(inboundCluster(80), "inbound|80||");
  assert.equal(outboundServerName("a.b", 80, "v1"), "outbound_.80_.v1_.a.b");
  assert.equal(virtualHostName("fd00::1", 80), "[fd00::1]:80");
  assert.equal(gatewayRouteName(8080, ""), "http.8080");
  assert.equal(gatewayRouteName(8080, "10.0.0.1"), "http.8080.10.0.0.1");
  const server = { port: 443, portName: "https", gateway: "front", namespace: "default", bind: "" };
  assert.equal(gatewayServerRouteName(server), "https.443.https.front.default");
});

test("configPath() writes the kind with dashes", () => {
  assert.equal(
    configPath("networking.istio.io", "VirtualService", { namespace: "ns", name: "a" }),
    "/apis/networking.istio.io/v1/namespaces/ns/virtual-service/a",
  );
});
