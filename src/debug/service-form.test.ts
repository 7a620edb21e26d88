/** Services and scopes of a mesh made of YAML, as istiod shows them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConnectedProxy } from "#model/ports.ts";
import { meshOf, objectsOf, proxyOf } from "../../test/support/mesh.ts";
import { mesh } from "./pages/mesh-pages.ts";
import type { DebugState } from "./pages/page.ts";
import { adsz } from "./pages/proxies.ts";
import { registryz } from "./pages/registryz.ts";
import { sidecarz } from "./pages/sidecarz.ts";

const MESH = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default, labels: {team: a}}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.1
  externalIPs: [192.0.2.1]
  selector: {app: web}
  trafficDistribution: PreferClose
  ports: [{name: http, port: 80}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: outside, namespace: default}
spec:
  hosts: [www.example.com]
  exportTo: [.]
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]
  resolution: NONE
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: several, namespace: default}
spec:
  hosts: [db.example.com]
  addresses: [240.0.0.1, 240.0.0.0/24]
  ports: [{number: 5432, name: tcp, protocol: TCP}]
  resolution: NONE
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: default}
spec: {host: web, trafficPolicy: {connectionPool: {tcp: {connectTimeout: 2s}}}}
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: narrow, namespace: default}
spec:
  workloadSelector: {labels: {app: narrow}}
  outboundTrafficPolicy: {mode: REGISTRY_ONLY}
  egress: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["./web.default.svc.cluster.local"]}, {hosts: ["./*"]}]
`;

function stateOf(labels: Readonly<Record<string, string>>): DebugState {
  const [snapshot, objects] = [meshOf(MESH), objectsOf(MESH)];
  const proxy = {
    ...proxyOf({ name: "app-1", labels, metadata: { CLUSTER_ID: "east", NETWORK: "n1" } }),
    locality: "r/z",
  };
  const connected: ConnectedProxy = {
    connectionId: "app-1.default-1",
    nodeId: proxy.nodeId,
    connectedAt: 0,
    address: "10.0.0.1:4000",
    proxy,
    istioVersion: "1.29.6",
    resources: () => [],
    types: new Map(),
  };
  return {
    source: { current: () => snapshot, objects: () => objects },
    connections: () => [connected],
    pushes: { changes: () => [], pushes: () => [] },
    held: () => ({ parts: 0, resources: 0 }),
  };
}

test("registryz() shows what objects say of their services", () => {
  const { source } = stateOf({});
  const shown = registryz(source.current(), undefined, source.objects()).map((service) => Object(service));
  const [web] = shown.filter(({ hostname }) => hostname === "web.default.svc.cluster.local");
  const { Type, ObjectName, LabelSelectors, TrafficDistribution, ClusterExternalAddresses, ExportTo, Labels } =
    web.Attributes;
  assert.deepEqual([Type, ObjectName, TrafficDistribution, ExportTo], ["LoadBalancer", "web", 1, null]);
  assert.deepEqual([LabelSelectors, Labels], [{ app: "web" }, { team: "a" }]);
  assert.deepEqual(ClusterExternalAddresses, { Addresses: { Kubernetes: ["192.0.2.1"] } });
  assert.deepEqual(web.clusterVIPs, { Addresses: { Kubernetes: ["10.96.0.1"] } });
  const [outside] = shown.filter(({ hostname }) => hostname === "www.example.com");
  assert.equal(outside.Attributes.ObjectName, "outside");
  assert.deepEqual(outside.Attributes.ExportTo, { ".": {} });
  assert.deepEqual(outside.Attributes.PassthroughTargetPorts, { 80: 8080 });
  const several = shown.filter(({ hostname }) => hostname === "db.example.com");
  assert.deepEqual(
    several.map(({ defaultAddress, clusterVIPs }) => [defaultAddress, clusterVIPs]),
    ["240.0.0.1", "240.0.0.0/24"].map((address) => [address, { Addresses: null }]),
  );
});

test("sidecarz() shows a Sidecar, its listeners, and the rules for what they lead to", () => {
  const request = { scope: undefined, query: { proxyID: "app-1.default" } };
  const wide = Object(sidecarz(stateOf({ app: "wide" }), request));
  assert.deepEqual([wide.name, wide.sidecar, wide.egressListenerServices.length], ["default-sidecar", null, 1]);
  const narrow = Object(sidecarz(stateOf({ app: "narrow" }), request));
  assert.deepEqual([narrow.name, narrow.outboundTrafficPolicy], ["narrow", { mode: "REGISTRY_ONLY" }]);
  assert.equal(narrow.sidecar.egress[0].port.number, 80);
  const hosts = narrow.egressListenerServices.map((all: { hostname: string }[]) => all.map(({ hostname }) => hostname));
  assert.deepEqual(hosts[0], ["web.default.svc.cluster.local"]);
  const [rule] = narrow.destinationRules["web.default.svc.cluster.local"];
  assert.deepEqual(rule.from, [{ Namespace: "default", Name: "web" }]);
  assert.equal(rule.rule.Spec.trafficPolicy.connectionPool.tcp.connectTimeout, "2s");
});

test("adsz() shows where a proxy is", () => {
  const { clients } = Object(adsz(stateOf({ app: "wide" }), { scope: undefined, query: {} }));
  assert.deepEqual(clients[0].locality, { region: "r", zone: "z" });
  assert.equal(clients[0].labels["topology.istio.io/cluster"], "east");
  assert.equal(clients[0].labels["topology.istio.io/network"], "n1");
});

test("mesh() shows what differs from an empty message", () => {
  const shown = Object(mesh(stateOf({})));
  assert.equal("accessLogFile" in shown, false);
  assert.deepEqual([shown.inboundTrafficPolicy, shown.enableTracing, shown.connectTimeout], [{}, true, "10s"]);
});
