import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { DEFAULT_PROXY_CONFIG, type ProxyConfig, type TlsSettings } from "#config/proxy-config/proxy-config.ts";
import { type NodeInput, nodeId, proxyNode } from "../node.ts";
import { envoyBootstrap } from "./bootstrap.ts";
import { grpcBootstrap } from "./grpc-bootstrap.ts";
import type { BootstrapInput } from "./input.ts";

const conformance = process.env.CONFORMANCE ?? join(import.meta.dirname, "../../../../shared/conformance");
const recorded = join(conformance, "../recorded");
const whereThere = (path: string) => ({ skip: existsSync(path) ? false : `no ${path}` });
const readJson = (path: string) => JSON.parse(readFileSync(path, "utf8"));

function inputOf(node: Partial<NodeInput>, more: Partial<BootstrapInput> = {}): BootstrapInput {
  const nodeInput: NodeInput = {
    id: "sidecar~1.2.3.4~foo~bar",
    addresses: ["10.3.3.3"],
    env: {},
    proxyConfig: DEFAULT_PROXY_CONFIG,
    pilotSubjectAltNames: [],
    envoyStatusPort: 15021,
    envoyPrometheusPort: 15090,
    exitOnZeroActiveConnections: false,
    skipDeprecatedLogs: false,
    workloadIdentitySocketFile: "socket",
    outlierLogPath: "",
    stsPort: 0,
    version: "1.29.6",
    ...node,
  };
  return {
    ...nodeInput,
    node: proxyNode(nodeInput),
    logAsJson: false,
    dualStack: false,
    statusPortProxyProtocol: false,
    hostIp: "",
    deltaXds: true,
    xdsRootCert: "",
    fips: false,
    stripFragment: true,
    ...more,
  };
}

function aboutStatistics(annotations: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(annotations).map(([name, text]) => [`sidecar.istio.io/${name}`, text]));
}

const RECORDED_CONFIG: ProxyConfig = {
  ...DEFAULT_PROXY_CONFIG,
  configPath: "./proxy",
  discoveryAddress: "localhost:15012",
};
const RECORDED_COMMON = {
  addresses: ["127.0.0.1", "192.0.2.2", "fd00::2"],
  pilotSubjectAltNames: ["istiod.istio-system.svc"],
  skipDeprecatedLogs: true,
  version: "unknown",
};

test("envoyBootstrap() equals the recorded one of a sidecar", whereThere(recorded), () => {
  const input = inputOf({
    ...RECORDED_COMMON,
    id: nodeId({
      type: "sidecar",
      name: "httpbin-1.default",
      dnsDomain: "default.svc.cluster.local",
      addresses: RECORDED_COMMON.addresses,
    }),
    env: {
      POD_NAME: "httpbin-1",
      POD_NAMESPACE: "default",
      ISTIO_META_CLUSTER_ID: "Kubernetes",
      ISTIO_META_DNS_CAPTURE: "true",
      ISTIO_METAJSON_LABELS: '{"app":"httpbin"}',
    },
    proxyConfig: { ...RECORDED_CONFIG, concurrency: 1, tracing: {} },
  });
  assert.deepEqual(envoyBootstrap(input).bootstrap, readJson(join(recorded, "sidecar/bootstrap.json")));
});

test("envoyBootstrap() equals the recorded one of a router", whereThere(recorded), () => {
  const input = inputOf({
    ...RECORDED_COMMON,
    id: "router~127.0.0.1~gw-1.istio-system~istio-system.svc.cluster.local",
    env: {
      POD_NAME: "gw-1",
      POD_NAMESPACE: "istio-system",
      ISTIO_META_CLUSTER_ID: "Kubernetes",
      ISTIO_META_MESH_ID: "cluster.local",
      ISTIO_META_OWNER: "kubernetes://apis/apps/v1/namespaces/istio-system/deployments/istio-ingressgateway",
      ISTIO_META_UNPRIVILEGED_POD: "true",
      ISTIO_META_WORKLOAD_NAME: "istio-ingressgateway",
      ISTIO_METAJSON_LABELS: '{"app":"istio-ingressgateway","istio":"ingressgateway"}',
    },
    proxyConfig: RECORDED_CONFIG,
  });
  assert.deepEqual(envoyBootstrap(input).bootstrap, readJson(join(recorded, "router/bootstrap.json")));
});

const bootstrapOf = (node: Partial<NodeInput>, more: Partial<BootstrapInput> = {}) => {
  const { bootstrap, problems } = envoyBootstrap(inputOf(node, more));
  return { text: JSON.stringify(bootstrap), bootstrap, problems };
};

test("envoyBootstrap() listens on IPv6 only where there is nothing else, and on both with dual stack", () => {
  assert.match(bootstrapOf({ addresses: ["fd00::1"] }).text, /"name":"::_15021"/);
  assert.match(bootstrapOf({ addresses: ["10.0.0.1", "fd00::1"] }).text, /"name":"0\.0\.0\.0_15021"/);
  const { text } = bootstrapOf({ addresses: ["fd00::1", "10.0.0.1"] }, { dualStack: true });
  assert.match(
    text,
    /"name":"::_15021".*"additionalAddresses":\[{"address":{"socket_address":{"protocol":"TCP","address":"0\.0\.0\.0"/,
  );
});

test("envoyBootstrap() takes any name of a runtime flag, also one that objects have", () => {
  const runtimeValues = Object.fromEntries([
    ["__proto__", "a"],
    ["constructor", "true"],
    ["toString", ""],
  ]);
  const { text } = bootstrapOf({ proxyConfig: { ...DEFAULT_PROXY_CONFIG, runtimeValues } });
  assert.match(text, /"static_layer":\{[^}]*"__proto__":"a","constructor":true\}/);
});

test("envoyBootstrap() lets the user change runtime flags and remove a default by an empty value", () => {
  const runtimeValues = { "re2.max_program_size.error_level": "", "envoy.x": "true", "envoy.y": "7" };
  const { text } = bootstrapOf({ proxyConfig: { ...DEFAULT_PROXY_CONFIG, runtimeValues } });
  const layer = /"static_layer":({[^}]*})/.exec(text)?.[1] ?? "";
  assert.doesNotMatch(layer, /re2\.max_program_size/);
  assert.match(layer, /"envoy\.x":true,"envoy\.y":"7"/);
});

test("envoyBootstrap() takes wanted statistics from annotations in place of the configuration", () => {
  const proxyStatsMatcher = { inclusionPrefixes: ["configured"], inclusionSuffixes: ["kept"] };
  const { text } = bootstrapOf(
    {
      proxyConfig: { ...DEFAULT_PROXY_CONFIG, proxyStatsMatcher, extraStatTags: ["a"] },
      podAnnotations: {
        "sidecar.istio.io/statsInclusionPrefixes": "http.{pod_ip}_,other",
        "sidecar.istio.io/extraStatTags": "a,b",
      },
      addresses: ["10.0.0.1", "10.0.0.2"],
    },
    { exitOnZeroActiveConnections: true },
  );
  assert.match(
    text,
    /{"prefix":"http\.10\.0\.0\.1_"},{"prefix":"http\.10\.0\.0\.2_"},{"prefix":"other"},{"prefix":"cluster_manager"}/,
  );
  assert.doesNotMatch(text, /"prefix":"configured"/);
  assert.match(text, /{"suffix":"kept"},.*{"suffix":"downstream_cx_active"}/);
  assert.equal(text.match(/\(a=\\\\\.=/g)?.length, 1);
});

test("envoyBootstrap() tells what it cannot read in annotations and goes on without", () => {
  const { bootstrap, problems } = bootstrapOf({
    podAnnotations: {
      "sidecar.istio.io/statsFlushInterval": "soon",
      "sidecar.istio.io/statsEvictionInterval": "7s",
      "sidecar.istio.io/statsHistogramBuckets": "[",
    },
    env: { ISTIO_META_LOAD_STATS_CONFIG_JSON: "{" },
  });
  assert.equal(problems.length, 4);
  assert.equal(bootstrap.stats_flush_interval, undefined);
  assert.equal(bootstrap.stats_eviction_interval, undefined);
});

test("envoyBootstrap() leaves out what annotations ask of statistics that Envoy would not start with", () => {
  const refused = [
    { statsFlushInterval: "0s" },
    { statsFlushInterval: "500us" },
    { statsFlushInterval: "-5s" },
    { statsFlushInterval: "5m" },
    { statsEvictionInterval: "0s" },
    { statsHistogramBuckets: '{"a":[0]}' },
    { statsHistogramBuckets: '{"a":[5,5]}' },
    { statsHistogramBuckets: '{"a":[1e400]}' },
    { statsHistogramBuckets: '{"":[1]}' },
  ];
  for (const annotations of refused) {
    const { bootstrap, problems } = bootstrapOf({ podAnnotations: aboutStatistics(annotations) });
    assert.equal(problems.length, 1, `told of ${JSON.stringify(annotations)}`);
    assert.equal(bootstrap.stats_flush_interval, undefined);
    assert.equal(bootstrap.stats_eviction_interval, undefined);
    assert.doesNotMatch(JSON.stringify(bootstrap), /histogram_bucket_settings/);
  }
  const longest = bootstrapOf({ podAnnotations: aboutStatistics({ statsFlushInterval: "4m59s" }) });
  assert.equal(longest.bootstrap.stats_flush_interval, "299s");
});

test("envoyBootstrap() takes null for a histogram without limits, and keeps the others", () => {
  const annotations = aboutStatistics({ statsHistogramBuckets: '{"a":null,"b":[1,5]}' });
  const { text, problems } = bootstrapOf({ podAnnotations: annotations });
  assert.match(text, /\[{"match":{"prefix":"a"},"buckets":\[\]},{"match":{"prefix":"b"},"buckets":\[1,5\]}\]/);
  assert.deepEqual(problems, []);
});

test("envoyBootstrap() passes over a comma too many in lists of statistics", () => {
  const { text, problems } = bootstrapOf({ podAnnotations: aboutStatistics({ statsInclusionPrefixes: "a,,b," }) });
  assert.match(text, /{"prefix":"reporter="},{"prefix":"a"},{"prefix":"b"},{"prefix":"cluster_manager"}/);
  assert.deepEqual(problems, []);
});

test("envoyBootstrap() verifies services without roots of their own by what the machine trusts, unless told not to", () => {
  const tlsTo = (tlsSettings: TlsSettings) =>
    bootstrapOf({
      proxyConfig: { ...DEFAULT_PROXY_CONFIG, envoyMetricsService: { address: "metrics:9000", tlsSettings } },
    }).text;
  const verified = tlsTo({ mode: "SIMPLE", subjectAltNames: ["metrics.example"] });
  assert.match(verified, /"match_subject_alt_names":\[{"exact":"metrics.example"}\]/);
  assert.match(verified, /"validation_context_sds_secret_config":{"name":"file-root:system"/);
  const skipped = tlsTo({ mode: "SIMPLE", insecureSkipVerify: true });
  assert.match(skipped, /UpstreamTlsContext/);
  assert.doesNotMatch(skipped, /validation_context/);
});

test("envoyBootstrap() calls the mesh's own services with the workload's certificate", () => {
  const envoyAccessLogService = {
    address: "als.mesh:9000",
    tlsSettings: { mode: "ISTIO_MUTUAL" },
    tcpKeepalive: { time: "10s", probes: 3 },
  } as const;
  const { text } = bootstrapOf({ proxyConfig: { ...DEFAULT_PROXY_CONFIG, envoyAccessLogService } });
  assert.match(text, /"alpn_protocols":\["istio","h2"\],"tls_certificate_sds_secret_configs":\[{"name":"default"/);
  assert.match(text, /"sni":"envoy_accesslog_service"/);
  assert.match(text, /"tcp_keepalive":{"keepalive_probes":{"value":3},"keepalive_time":{"value":10}}/);
});

test("envoyBootstrap() puts the machine's address in place of $(HOST_IP)", () => {
  const tracing = { datadog: { address: "$(HOST_IP):8126" } };
  const { text } = bootstrapOf({ proxyConfig: { ...DEFAULT_PROXY_CONFIG, tracing } }, { hostIp: "192.0.2.9" });
  assert.match(text, /"address":"192\.0\.2\.9","port_value":8126/);
});

test("envoyBootstrap() takes a limit of connections with a plus sign, as Go reads numbers", () => {
  const proxyMetadata = { ISTIO_META_GLOBAL_DOWNSTREAM_MAX_CONNECTIONS: "+500" };
  const { text } = bootstrapOf({ proxyConfig: { ...DEFAULT_PROXY_CONFIG, proxyMetadata } });
  assert.match(text, /"max_active_downstream_connections":500}/);
});

test("grpcBootstrap() points to the agent's socket and leaves metadata of Envoy alone out", () => {
  const { node } = inputOf({ env: { ISTIO_METAJSON_LABELS: '{"app":"httpbin"}', POD_NAMESPACE: "default" } });
  const bootstrap = JSON.stringify(
    grpcBootstrap({ node, xdsSocketPath: "etc/istio/proxy/XDS", certificateFolder: "/certs" }),
  );
  assert.match(bootstrap, /"server_uri":"unix:\/\/\/etc\/istio\/proxy\/XDS"/);
  assert.match(bootstrap, /"GENERATOR":"grpc"/);
  assert.match(bootstrap, /"private_key_file":"\/certs\/key\.pem"/);
  assert.doesNotMatch(bootstrap, /"app":"httpbin","/);
});
