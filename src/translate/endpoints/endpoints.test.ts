import assert from "node:assert/strict";
import { test } from "node:test";
import type { LbEndpoint } from "#gen/envoy/config/endpoint/v3/endpoint_components_pb.ts";
import type { ClusterLoadAssignment } from "#gen/envoy/config/endpoint/v3/endpoint_pb.ts";
import { type MeshOptions, meshOf, type ProxyOptions, proxyOf } from "../../../test/support/mesh.ts";
import { object, service, workload } from "../../../test/support/objects.ts";
import { translated } from "../../../test/support/translated.ts";
import { viewsOf } from "../views/views.ts";
import { planEndpoints } from "./plan.ts";

const CLUSTER = "outbound|80||web.default.svc.cluster.local";
const HTTP = { name: "http", number: 80, protocol: "HTTP" };
const WEB = service("web", { name: "http", port: 80, targetPort: 8080 });
const rule = (spec: object) => object("DestinationRule", "rule", { host: "web", ...spec });
const at = (place: string, more: object = {}) => ({ locality: place, ...more });
const assignmentOf = (
  yaml: string,
  { cluster = CLUSTER, ...options }: MeshOptions & ProxyOptions & { readonly cluster?: string } = {},
) => translated(meshOf(yaml, options), proxyOf({ ip: "10.9.0.1", ...options })).endpoints(cluster);

function addressOf({ hostIdentifier }: LbEndpoint): string {
  const address = hostIdentifier.case === "endpoint" ? hostIdentifier.value.address?.address : undefined;
  if (address?.case === "pipe") return address.value.path;
  assert.equal(address?.case, "socketAddress");
  return `${address?.value.address}:${address?.value.portSpecifier.value}`;
}
const addresses = ({ endpoints }: ClusterLoadAssignment) =>
  endpoints.flatMap(({ lbEndpoints }) => lbEndpoints.map(addressOf));
const priorities = ({ endpoints }: ClusterLoadAssignment) =>
  Object.fromEntries(endpoints.map(({ locality, priority }) => [locality?.region, priority]));
const takesMtls = ({ endpoints }: ClusterLoadAssignment) =>
  endpoints[0]?.lbEndpoints.map(({ metadata }) => "envoy.transport_socket_match" in (metadata?.filterMetadata ?? {}));

test("endpoints are grouped by locality, with their weights", () => {
  const yaml =
    WEB +
    workload("web-1", "10.1.0.1", at("b", { weight: 3 })) +
    workload("web-2", "10.1.0.2", at("a")) +
    workload("web-3", "10.1.0.3", at("b"));
  const assignment = assignmentOf(yaml);
  assert.deepEqual(addresses(assignment), ["10.1.0.2:8080", "10.1.0.1:8080", "10.1.0.3:8080"]);
  assert.deepEqual(
    assignment.endpoints.map(({ loadBalancingWeight }) => loadBalancingWeight),
    [1, 4],
  );
});

test("a pod with addresses of both families is offered with both, where both are used", () => {
  const yaml = JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web-1", namespace: "default", labels: { app: "web" } },
    spec: { containers: [{ name: "c", image: "i" }] },
    status: {
      phase: "Running",
      podIP: "10.1.0.1",
      podIPs: [{ ip: "10.1.0.1" }, { ip: "fd00::1" }],
      conditions: [{ type: "Ready", status: "True" }],
    },
  });
  const further = (dualStack: boolean) => {
    const { endpoints } = assignmentOf(WEB + yaml, { features: { dualStack } });
    const [only] = endpoints.flatMap(({ lbEndpoints }) => lbEndpoints);
    assert.ok(only?.hostIdentifier.case === "endpoint");
    return only.hostIdentifier.value.additionalAddresses.map(({ address }) => {
      const { case: kind, value } = address?.address ?? {};
      return kind === "socketAddress" ? `${value?.address} ${value?.portSpecifier.value}` : kind;
    });
  };
  assert.deepEqual(further(true), ["fd00::1 8080"]);
  assert.deepEqual(further(false), []);
});

test("a locality whose endpoints are all out of reach has no weight", () => {
  const far = { network: "n2", labels: { app: "web", "security.istio.io/tlsMode": "disabled" } };
  const yaml =
    WEB + workload("web-1", "10.1.0.1", at("a", { network: "n1" })) + workload("web-2", "10.2.0.1", at("b", far));
  const mesh = meshOf(yaml);
  const gateway = { network: "n2", clusterId: "", address: "2.2.2.2", port: 15443 };
  const proxy = proxyOf({ ip: "10.9.0.1", metadata: { NETWORK: "n1" } });
  const { endpoints } = translated({ ...mesh, networkGateways: [gateway] }, proxy).endpoints(CLUSTER);
  assert.deepEqual(
    endpoints.map(({ lbEndpoints, loadBalancingWeight }) => [lbEndpoints.length, loadBalancingWeight]),
    [
      [1, 1],
      [0, undefined],
    ],
  );
});

test("of a number that a service has for UDP too the port for TCP counts", () => {
  const udp = { name: "quic", port: 80, targetPort: 8443, protocol: "UDP" };
  const yaml = service("web", udp, { name: "http", port: 80, targetPort: 8080 }) + workload("web-1", "10.1.0.1");
  assert.deepEqual(addresses(assignmentOf(yaml)), ["10.1.0.1:8080"]);
});

test("a subset has the endpoints with its labels", () => {
  const yaml =
    WEB +
    workload("web-1", "10.1.0.1", { labels: { app: "web", version: "v1" } }) +
    workload("web-2", "10.1.0.2", { labels: { app: "web", version: "v2" } }) +
    rule({ subsets: [{ name: "second", labels: { version: "v2" } }] });
  assert.deepEqual(addresses(assignmentOf(yaml, { cluster: CLUSTER.replace("||", "|second|") })), ["10.1.0.2:8080"]);
});

test("only clusters that a proxy has by EDS have endpoints here: one on its way out keeps those it had", () => {
  const entry = (name: string, resolution: string) =>
    object("ServiceEntry", name, { hosts: [`${name}.example.com`], ports: [HTTP], resolution });
  const yaml =
    WEB +
    workload("web-1", "10.1.0.1") +
    rule({ subsets: [{ name: "known" }] }) +
    entry("any", "NONE") +
    entry("named", "DNS") +
    object("Sidecar", "narrow", {
      workloadSelector: { labels: { app: "narrow" } },
      egress: [{ hosts: ["./named.example.com"] }],
    });
  const snapshot = meshOf(yaml);
  const has = (cluster: string, options: ProxyOptions = {}) =>
    planEndpoints(snapshot, viewsOf(snapshot, proxyOf({ ip: "10.9.0.1", ...options })).endpoints, cluster) !==
    undefined;
  assert.ok(has(CLUSTER));
  assert.ok(has(CLUSTER.replace("||", "|known|")));
  assert.ok(!has(CLUSTER.replace("||", "|unknown|")));
  assert.ok(!has(CLUSTER.replace("80", "81")));
  assert.ok(!has(CLUSTER.replace("web.", "gone.")));
  assert.ok(!has(CLUSTER, { labels: { app: "narrow" } }));
  assert.ok(!has("outbound|80||named.example.com"));
  assert.ok(!has("outbound|80||any.example.com"));
  assert.ok(has("outbound|80||any.example.com", { type: "router" }));
});

test("an endpoint may be a Unix socket", () => {
  const entry = (address: string) =>
    object("ServiceEntry", "ext", {
      hosts: ["ext.example.com"],
      ports: [{ number: 80, name: "http", protocol: "HTTP" }],
      resolution: "STATIC",
      endpoints: [{ address, ...(!address.startsWith("unix") && { ports: { http: 8080 } }) }],
    });
  const cluster = "outbound|80||ext.example.com";
  assert.deepEqual(addresses(assignmentOf(entry("unix:///run/app.sock"), { cluster })), ["/run/app.sock"]);
  assert.deepEqual(addresses(assignmentOf(entry("10.1.0.9"), { cluster })), ["10.1.0.9:8080"]);
});

test("mutual TLS is for endpoints with a proxy, unless a policy of the workload or its port turned it off", () => {
  const web = WEB + workload("web-1", "10.1.0.1");
  const policy = (spec: object) =>
    object("PeerAuthentication", "off", { selector: { matchLabels: { app: "web" } }, ...spec });
  assert.deepEqual(takesMtls(assignmentOf(web)), [true]);
  assert.deepEqual(takesMtls(assignmentOf(WEB + workload("web-1", "10.1.0.1", { serviceAccount: "" }))), [false]);
  assert.deepEqual(takesMtls(assignmentOf(web + policy({ mtls: { mode: "DISABLE" } }))), [false]);
  assert.deepEqual(takesMtls(assignmentOf(web + policy({ portLevelMtls: { 8080: { mode: "DISABLE" } } }))), [false]);
  assert.deepEqual(takesMtls(assignmentOf(web + policy({ portLevelMtls: { 9090: { mode: "DISABLE" } } }))), [true]);
});

const spread = ["near", "far", "farthest"]
  .map((place, i) => workload(`web-${i}`, `10.1.0.${i + 1}`, at(place)))
  .join("");
const self = service("self", { name: "http", port: 80 }) + workload("self-1", "10.9.0.1", at("near"));

test("with outlier detection far endpoints stand by for near ones, the named region first", () => {
  const failover = { localityLbSetting: { failover: [{ from: "near", to: "farthest" }] } };
  const all = (trafficPolicy: object) => priorities(assignmentOf(WEB + spread + self + rule({ trafficPolicy })));
  assert.deepEqual(all({ outlierDetection: {} }), { near: 0, far: 1, farthest: 1 });
  assert.deepEqual(all({ outlierDetection: {}, loadBalancer: failover }), { near: 0, far: 2, farthest: 1 });
  assert.deepEqual(all({ loadBalancer: failover }), { near: 0, far: 0, farthest: 0 });
});

test("shares by locality replace weights, and leave out the rest", () => {
  const distribute = [{ from: "near", to: { near: 80, far: 20 } }];
  const trafficPolicy = { loadBalancer: { localityLbSetting: { distribute } } };
  const { endpoints } = assignmentOf(WEB + spread + self + rule({ trafficPolicy }));
  assert.deepEqual(
    endpoints.map(({ locality, loadBalancingWeight, lbEndpoints }) => [
      locality?.region,
      lbEndpoints.length > 0 ? loadBalancingWeight : "none",
    ]),
    [
      ["far", 20],
      ["farthest", "none"],
      ["near", 80],
    ],
  );
});

test("endpoints that share more of the given labels with the proxy come first, without gaps", () => {
  const labelled = (name: string, address: string, labels: object) =>
    workload(name, address, { labels: { app: "web", ...labels } });
  const yaml =
    WEB +
    labelled("web-1", "10.1.0.1", { net: "n1", rack: "r1" }) +
    labelled("web-2", "10.1.0.2", { net: "n1", rack: "r2" }) +
    labelled("web-3", "10.1.0.3", { net: "n2", rack: "r1" }) +
    rule({
      trafficPolicy: {
        outlierDetection: {},
        loadBalancer: { localityLbSetting: { failoverPriority: ["net", "rack"] } },
      },
    });
  const { endpoints } = assignmentOf(yaml, { labels: { net: "n1", rack: "r1" } });
  const byPriority = endpoints.map(({ priority, lbEndpoints }) => [priority, ...lbEndpoints.map(addressOf)]);
  assert.deepEqual(byPriority, [
    [0, "10.1.0.1:8080"],
    [1, "10.1.0.2:8080"],
    [2, "10.1.0.3:8080"],
  ]);
});

test("a label that neither the proxy nor an endpoint has does not tell them apart", () => {
  const yaml =
    WEB +
    workload("web-1", "10.1.0.1", { labels: { app: "web", rack: "r1" } }) +
    workload("web-2", "10.1.0.2", { labels: { app: "web", rack: "r2" } }) +
    rule({
      trafficPolicy: {
        outlierDetection: {},
        loadBalancer: { localityLbSetting: { failoverPriority: ["net", "rack"] } },
      },
    });
  const { endpoints } = assignmentOf(yaml, { labels: { rack: "r2" } });
  assert.deepEqual(
    endpoints.map(({ priority, lbEndpoints }) => [priority, ...lbEndpoints.map(addressOf)]),
    [
      [0, "10.1.0.2:8080"],
      [1, "10.1.0.1:8080"],
    ],
  );
});

const slice = (name: string, endpoints: readonly object[]) =>
  `${JSON.stringify({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name, namespace: "default", labels: { "kubernetes.io/service-name": "web" } },
    addressType: "IPv4",
    ports: [{ name: "http", port: 8080 }],
    endpoints,
  })}\n---\n`;
const kubernetesService = (spec: object) =>
  `${JSON.stringify({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", namespace: "default" },
    spec: { clusterIP: "10.96.0.1", ports: [{ name: "http", port: 80 }], ...spec },
  })}\n---\n`;
const pod = (name: string, ip: string, nodeName: string) =>
  `${JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default" },
    spec: { nodeName },
    status: { podIP: ip },
  })}\n---\n`;
const node = (name: string, zone: string) =>
  `${JSON.stringify({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { "topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": zone } },
  })}\n---\n`;
const TWO_NODES =
  node("n1", "z1") +
  node("n2", "z2") +
  pod("web-1", "10.1.0.1", "n1") +
  pod("web-2", "10.1.0.2", "n2") +
  slice("web", [
    { addresses: ["10.1.0.1"], nodeName: "n1", targetRef: { kind: "Pod", name: "web-1", namespace: "default" } },
    { addresses: ["10.1.0.2"], nodeName: "n2", targetRef: { kind: "Pod", name: "web-2", namespace: "default" } },
  ]);

test("a service that prefers the caller's zone or node has the other endpoints stand by", () => {
  const labels = { "topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z2" };
  const byZone = (spec: object, options: ProxyOptions) => {
    const { endpoints } = assignmentOf(kubernetesService(spec) + TWO_NODES, options);
    return Object.fromEntries(endpoints.map(({ locality, priority }) => [locality?.zone, priority]));
  };
  const near = { trafficDistribution: "PreferClose" };
  assert.deepEqual(byZone(near, { labels }), { z1: 1, z2: 0 });
  assert.deepEqual(byZone({}, { labels }), { z1: 0, z2: 0 });
  const sameNode = { trafficDistribution: "PreferSameNode" };
  assert.deepEqual(byZone(sameNode, { labels, metadata: { NODE_NAME: "n1" } }), { z1: 1, z2: 0 });
});

test("a service may keep to the caller's node", () => {
  const yaml = kubernetesService({ internalTrafficPolicy: "Local" }) + TWO_NODES;
  assert.deepEqual(addresses(assignmentOf(yaml, { metadata: { NODE_NAME: "n2" } })), ["10.1.0.2:8080"]);
  assert.deepEqual(addresses(assignmentOf(yaml, { metadata: { NODE_NAME: "n3" } })), []);
});

test("hosts that the mesh keeps within clusters have no endpoints in other clusters", () => {
  const yaml = kubernetesService({}) + TWO_NODES;
  const settings = (hosts: string[]) => ({ serviceSettings: [{ settings: { clusterLocal: true }, hosts }] });
  const elsewhere = { metadata: { CLUSTER_ID: "other" } };
  const local = settings(["*.default.svc.cluster.local"]);
  assert.equal(addresses(assignmentOf(yaml, elsewhere)).length, 2);
  assert.equal(addresses(assignmentOf(yaml, { ...elsewhere, mesh: local })).length, 0);
  assert.equal(addresses(assignmentOf(yaml, { mesh: local })).length, 2);
  assert.equal(addresses(assignmentOf(yaml, { ...elsewhere, mesh: settings(["other.example.com"]) })).length, 2);
});
