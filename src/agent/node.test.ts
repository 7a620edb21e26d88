import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_PROXY_CONFIG } from "#config/proxy-config/proxy-config.ts";
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
    name: "gw.ns",
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

test("proxyNode() leaves out ports that Envoy picks itself", () => {
  const { metadata } = proxyNode({ ...INPUT, envoyStatusPort: 0, envoyPrometheusPort: 0 });
  assert.deepEqual([metadata.ENVOY_STATUS_PORT, metadata.ENVOY_PROMETHEUS_PORT], [undefined, undefined]);
});

test("proxyNode() has no name, namespace or account where the pod's is empty, whatever metadata gives", () => {
  const { metadata, extraMetadata } = proxyNode({
    ...INPUT,
    env: {
      POD_NAME: "",
      POD_NAMESPACE: "",
      SERVICE_ACCOUNT: "",
      ISTIO_META_NAME: "a",
      ISTIO_META_NAMESPACE: "b",
      ISTIO_META_SERVICE_ACCOUNT: "sa",
    },
  });
  assert.deepEqual([metadata.NAME, metadata.NAMESPACE, metadata.SERVICE_ACCOUNT], [undefined, undefined, undefined]);
  assert.deepEqual(extraMetadata, { NAME: "a", NAMESPACE: "b", SERVICE_ACCOUNT: "sa" });
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

test("proxyNode() takes ports that are null for none", () => {
  const { problems, metadata } = proxyNode({ ...INPUT, env: { ISTIO_META_POD_PORTS: "null" } });
  assert.deepEqual([problems, "POD_PORTS" in metadata], [[], false]);
});

test("proxyNode() reads ports as Go does: null is empty, and fields have any mix of cases", () => {
  const portsOf = (json: string) => {
    const { problems, metadata } = proxyNode({ ...INPUT, env: { ISTIO_META_POD_PORTS: json } });
    return problems.length > 0 ? problems : metadata.POD_PORTS;
  };
  const empty = '{"containerPort":0,"protocol":""}';
  assert.equal(portsOf("[null]"), `[${empty}]`);
  assert.equal(portsOf('[{"name":null,"containerPort":null,"protocol":null}]'), `[${empty}]`);
  assert.equal(portsOf('[{"ContainerPort":80,"NAME":"a"}]'), '[{"name":"a","containerPort":80,"protocol":""}]');
  for (const wrong of ["[[]]", "[80]", '[{"containerPort":1e30}]', '[{"containerPort":"80"}]', '[{"name":1}]'])
    assert.deepEqual(portsOf(wrong), [
      `ISTIO_META_POD_PORTS must be a JSON list of ports, not ${JSON.stringify(wrong)}`,
    ]);
});

test("proxyNode() warns of labels that are no texts, which have no value", () => {
  const { warnings, labels } = proxyNode({ ...INPUT, env: { ISTIO_METAJSON_LABELS: '{"app":"a","tier":1,"x":null}' } });
  assert.deepEqual(warnings, ["ISTIO_METAJSON_LABELS: tier must be text, not 1"]);
  assert.equal(labels.tier, "");
});

const DEEP = `${"[".repeat(10_000)}${"]".repeat(10_000)}`;

test("proxyNode() tells what it cannot read, and what a node cannot have", () => {
  const { problems, warnings, metadata } = proxyNode({
    ...INPUT,
    env: {
      ISTIO_METAJSON_LABELS: "{",
      ISTIO_METAJSON_X: "[1]",
      ISTIO_METAJSON_Z: `{"a":${DEEP}}`,
      ISTIO_METAJSON_Y:
        '{"OWNER":1,"LABELS":{"a":2},"MESH_ID":null,"PILOT_SAN":["a"],"PROXY_CONFIG":{},"ENVOY_STATUS_PORT":1}',
      ISTIO_META_DNS_CAPTURE: "maybe",
      ISTIO_META_POD_PORTS: "80",
      ISTIO_META_ENVOY_PROMETHEUS_PORT: "15090",
      ISTIO_META_EXIT_ON_ZERO_ACTIVE_CONNECTIONS: "maybe",
    },
  });
  assert.deepEqual(warnings, [
    "ISTIO_METAJSON_LABELS must be a JSON object, not {",
    "ISTIO_METAJSON_X must be a JSON object, not [1]",
    `ISTIO_METAJSON_Z must be a JSON object, not {"a":${DEEP}}`,
  ]);
  assert.deepEqual(problems, [
    'ISTIO_META_DNS_CAPTURE must be true or false, not "maybe"',
    'ISTIO_META_ENVOY_PROMETHEUS_PORT must be a number, not "15090"',
    'ISTIO_META_EXIT_ON_ZERO_ACTIVE_CONNECTIONS must be true or false, not "maybe"',
    'ISTIO_META_LABELS must be a map of texts, not {"a":2}',
    "ISTIO_META_OWNER must be text, not 1",
    'ISTIO_META_POD_PORTS must be a JSON list of ports, not "80"',
  ]);
  assert.equal("DNS_CAPTURE" in metadata, false);
});

test("proxyNode() knows keys in any mix of cases, and ports in their own form", () => {
  const { metadata, extraMetadata } = proxyNode({
    ...INPUT,
    env: {
      ISTIO_META_Owner: "me",
      ISTIO_META_POD_PORTS: '[{"containerPort":80,"x":1},{"name":"a","containerPort":1,"protocol":"TCP"}]',
    },
  });
  assert.equal(metadata.OWNER, "me");
  assert.equal(
    metadata.POD_PORTS,
    '[{"containerPort":80,"protocol":""},{"name":"a","containerPort":1,"protocol":"TCP"}]',
  );
  assert.deepEqual(extraMetadata, { Owner: "me" });
});

test("proxyNode() takes metadata under any key, also one that objects have", () => {
  const proxyMetadata = { ISTIO_META___proto__: "a", ISTIO_META_constructor: "b" };
  const given = proxyNode({ ...INPUT, env: {}, proxyConfig: { ...DEFAULT_PROXY_CONFIG, proxyMetadata } });
  assert.equal(JSON.stringify(given.extraMetadata), '{"__proto__":"a","constructor":"b"}');
  const objects = proxyNode({ ...INPUT, env: { ISTIO_METAJSON_X: '{"__proto__":{"OWNER":"me"},"toString":1}' } });
  assert.equal(JSON.stringify(objects.extraMetadata), '{"__proto__":{"OWNER":"me"},"toString":1}');
  assert.equal(objects.metadata.OWNER, undefined);
});

test("proxyNode() takes labels and names from metadata where there is nothing better", () => {
  const { metadata, labels, cluster } = proxyNode({
    ...INPUT,
    env: { ISTIO_META_NAMESPACE: "ns", ISTIO_METAJSON_X: '{"LABELS":{"app":"a"},"ANNOTATIONS":{"n":"1"}}' },
  });
  assert.deepEqual([metadata.NAMESPACE, labels, cluster], ["ns", { app: "a" }, "a.ns"]);
  assert.deepEqual(metadata.ANNOTATIONS, { n: "1" });
});

const PLATFORM = { metadata: { aws_region: "r" }, locality: { region: "r", zone: "z" }, labels: { machine: "m" } };

test("proxyNode() takes place, metadata and labels from the platform", () => {
  const env = { ISTIO_METAJSON_LABELS: '{"app":"a"}' };
  const { metadata, locality, labels } = proxyNode({ ...INPUT, env, platform: PLATFORM });
  assert.deepEqual(metadata.PLATFORM_METADATA, { aws_region: "r" });
  assert.deepEqual(locality, { region: "r", zone: "z" });
  assert.deepEqual(labels, { app: "a", machine: "m" });
  const labelled = proxyNode({ ...INPUT, platform: PLATFORM, podLabels: { "istio-locality": "x" } });
  assert.deepEqual([labelled.locality, labelled.labels.machine], [{ region: "x" }, "m"]);
});

test("proxyNode() says to Envoy alone which sockets there are", () => {
  const { metadata, extraMetadata } = proxyNode({ ...INPUT, credentialSocket: true, fileCredentials: true });
  assert.deepEqual(extraMetadata, { credential: "true", "file-credential": "true" });
  assert.equal("credential" in metadata, false);
});
