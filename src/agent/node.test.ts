import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_PROXY_CONFIG } from "#config/proxy-config.ts";
import { type NodeInput, nodeId, proxyNode } from "./node.ts";

const INPUT: NodeInput = {
  id: "sidecar~10.0.0.1~a.b~b.svc.cluster.local",
  addresses: ["10.0.0.1", "10.0.0.2", "10.0.0.1"],
  env: { POD_NAME: "a", POD_NAMESPACE: "b", SERVICE_ACCOUNT: "sa" },
  proxyConfig: DEFAULT_PROXY_CONFIG,
  pilotSubjectAltNames: ["istiod.istio-system.svc"],
  envoyStatusPort: 15021,
  envoyPrometheusPort: 15090,
  exitOnZeroActiveConnections: false,
  skipDeprecatedLogs: true,
  workloadIdentitySocketFile: "socket",
  outlierLogPath: "",
  stsPort: 0,
  version: "1.29.6",
};

test("nodeId() joins type, first address, pod and domain", () => {
  const id = nodeId({
    type: "router",
    podName: "gw",
    podNamespace: "ns",
    dnsDomain: "ns.svc",
    addresses: ["1.1.1.1", "2.2.2.2"],
  });
  assert.equal(id, "router~1.1.1.1~gw.ns~ns.svc");
});

test("proxyNode() gives metadata its JSON types", () => {
  assert.deepEqual(proxyNode(INPUT).metadata, {
    ENVOY_STATUS_PORT: 15021,
    ENVOY_PROMETHEUS_PORT: 15090,
    INSTANCE_IPS: "10.0.0.1,10.0.0.2",
    PILOT_SAN: ["istiod.istio-system.svc"],
    ENVOY_SKIP_DEPRECATED_LOGS: "true",
    WORKLOAD_IDENTITY_SOCKET_FILE: "socket",
    PROXY_CONFIG: DEFAULT_PROXY_CONFIG,
    NAME: "a",
    NAMESPACE: "b",
    SERVICE_ACCOUNT: "sa",
    METADATA_DISCOVERY: "false",
    ISTIO_VERSION: "1.29.6",
  });
});

test("proxyNode() takes ISTIO_META_* from the environment before those of the configuration", () => {
  const proxyMetadata = { ISTIO_META_MESH_ID: "configured", ISTIO_META_NETWORK: "n1", OTHER: "x" };
  const { metadata, extraMetadata } = proxyNode({
    ...INPUT,
    env: {
      ISTIO_META_MESH_ID: "m1",
      ISTIO_META_DNS_CAPTURE: "1",
      ISTIO_META_DNS_AUTO_ALLOCATE: "false",
      ISTIO_META_MINE: "y",
    },
    proxyConfig: { ...DEFAULT_PROXY_CONFIG, proxyMetadata },
  });
  assert.deepEqual([metadata.MESH_ID, metadata.NETWORK, metadata.DNS_CAPTURE], ["m1", "n1", "true"]);
  assert.deepEqual(extraMetadata, { DNS_AUTO_ALLOCATE: "false", MINE: "y" });
});

test("proxyNode() puts labels of the file over those of the environment, without the template hash", () => {
  const { metadata, extraMetadata, labels } = proxyNode({
    ...INPUT,
    env: { ISTIO_METAJSON_LABELS: '{"app":"old","tier":"web"}' },
    podLabels: { app: "new", "pod-template-hash": "123" },
    podAnnotations: { note: "x" },
  });
  assert.deepEqual(labels, { app: "new", tier: "web" });
  assert.deepEqual(metadata.STATIC_LABELS, { app: "old", tier: "web" });
  assert.deepEqual(metadata.ANNOTATIONS, { note: "x" });
  assert.deepEqual(extraMetadata, { app: "old", tier: "web" });
});

test("proxyNode() reads the locality from its label, with dots or slashes", () => {
  const at = (podLabels: Record<string, string>) => proxyNode({ ...INPUT, podLabels });
  const { locality, labels } = at({ "istio-locality": "r.z.s" });
  assert.deepEqual([locality, labels["istio-locality"]], [{ region: "r", zone: "z", sub_zone: "s" }, "r/z/s"]);
  assert.deepEqual(at({ "istio-locality": "r/z.1" }).locality, { region: "r", zone: "z.1" });
  assert.deepEqual(at({ "topology.istio.io/locality": "a.b", "istio-locality": "c" }).locality, {
    region: "a",
    zone: "b",
  });
});

for (const [what, more, cluster] of [
  ["the app label", { podLabels: { app: "httpbin" } }, "httpbin.b"],
  ["the workload name", { env: { ...INPUT.env, ISTIO_META_WORKLOAD_NAME: "w" } }, "w.b"],
  ["nothing but a namespace", {}, "istio-proxy.b"],
  ["nothing", { env: {} }, "istio-proxy"],
  ["a chosen name", { proxyConfig: { ...DEFAULT_PROXY_CONFIG, serviceCluster: "mine" } }, "mine"],
  [
    "the canonical name",
    {
      podLabels: { "app.kubernetes.io/name": "canon" },
      proxyConfig: { ...DEFAULT_PROXY_CONFIG, tracingServiceName: "CANONICAL_NAME_ONLY" },
    },
    "canon",
  ],
  [
    "the canonical name and namespace",
    {
      podLabels: { app: "canon" },
      proxyConfig: { ...DEFAULT_PROXY_CONFIG, tracingServiceName: "CANONICAL_NAME_AND_NAMESPACE" },
    },
    "canon.b",
  ],
] as const satisfies readonly (readonly [string, Partial<NodeInput>, string])[]) {
  test(`proxyNode() makes the service cluster from ${what}`, () => {
    assert.equal(proxyNode({ ...INPUT, ...more }).cluster, cluster);
  });
}

test("proxyNode() tells what it cannot read and goes on", () => {
  const { problems, metadata } = proxyNode({
    ...INPUT,
    env: { ISTIO_METAJSON_LABELS: "{", ISTIO_METAJSON_X: "[1]", ISTIO_META_DNS_CAPTURE: "maybe" },
  });
  assert.deepEqual(problems, [
    "ISTIO_METAJSON_LABELS must be a JSON object, not {",
    "ISTIO_METAJSON_X must be a JSON object, not [1]",
    'ISTIO_META_DNS_CAPTURE must be true or false, not "maybe"',
  ]);
  assert.equal("DNS_CAPTURE" in metadata, false);
});
