/** Each switch of the control plane, by what it changes in what proxies get. The values are those of real istiod. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonValue } from "@bufbuild/protobuf";
import { type Effect, look } from "../../../test/support/switch-effects.ts";

const OUTBOUND = { kind: "listener", name: "0.0.0.0_80" } as const;
const A_80 = { kind: "cluster", name: "outbound|80||a.example" } as const;
const S_80 = { kind: "cluster", name: "outbound|80||s.example" } as const;
const EXT = { kind: "cluster", name: "outbound|80||ext.example" } as const;
const SNIFFED = ["http/1.1", "h2c"];
const COOKIE = {
  "@type": "type.googleapis.com/envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState",
  cookie: { name: "sess", path: "/p" },
};
const HEADER = {
  "@type": "type.googleapis.com/envoy.extensions.http.stateful_session.header.v3.HeaderBasedSessionState",
  name: "x-my",
};
const session = (by: string, typedConfig: JsonValue) => ({ name: `envoy.http.stateful_session.${by}`, typedConfig });
const RANGES = [
  { addressPrefix: "10.4.0.0", prefixLen: 16 },
  { addressPrefix: "10.5.0.0", prefixLen: 16 },
];

const EFFECTS: Readonly<Record<string, Effect>> = {
  "PILOT_HTTP10 accepts HTTP/1.0": {
    features: { http10: true },
    ...OUTBOUND,
    field: "acceptHttp10",
    usual: [],
    changed: [true],
  },
  "PILOT_HTTP10 detects HTTP/1.0 of what the application calls": {
    features: { http10: true },
    kind: "listener",
    name: "10.1.1.1_7000",
    field: "applicationProtocols",
    usual: [SNIFFED],
    changed: [["http/1.0", ...SNIFFED]],
  },
  ENABLE_100_CONTINUE_HEADERS: {
    features: { continue100: false },
    ...OUTBOUND,
    field: "proxy100Continue",
    usual: [true],
    changed: [],
  },
  PILOT_SIDECAR_USE_REMOTE_ADDRESS: {
    features: { remoteAddress: true },
    ...OUTBOUND,
    field: "useRemoteAddress",
    usual: [false],
    changed: [true],
  },
  "PILOT_SIDECAR_USE_REMOTE_ADDRESS makes networks of the mesh internal": {
    features: { remoteAddress: true },
    ...OUTBOUND,
    field: "cidrRanges",
    usual: [],
    changed: [RANGES],
  },
  ENABLE_HCM_INTERNAL_NETWORKS: {
    features: { internalNetworks: true },
    ...OUTBOUND,
    field: "cidrRanges",
    usual: [],
    changed: [RANGES],
  },
  "PILOT_ENABLE_PERSISTENT_SESSION_FILTER of a host": {
    features: { sessionFilter: true },
    kind: "route",
    name: "80",
    field: "sessionState",
    usual: [],
    changed: [session("cookie", COOKIE), session("cookie", COOKIE)],
  },
  PILOT_PERSISTENT_SESSION_HEADER_LABEL: {
    features: { sessionFilter: true, sessionCookieLabel: "", sessionHeaderLabel: "my-header" },
    kind: "route",
    name: "80",
    field: "sessionState",
    usual: [],
    changed: [session("header", HEADER), session("header", HEADER)],
  },
  "PILOT_PERSISTENT_SESSION_LABEL keeps endpoints that drain": {
    features: { sessionCookieLabel: "none" },
    ...S_80,
    field: "statuses",
    usual: [["HEALTHY", "DRAINING", "UNKNOWN", "DEGRADED"]],
    changed: [],
  },
  PILOT_DRAINING_LABEL: {
    features: { drainingLabel: "other" },
    kind: "endpoints",
    name: S_80.name,
    field: "healthStatus",
    usual: ["DRAINING"],
    changed: [],
  },
  "PILOT_SEND_UNHEALTHY_ENDPOINTS lets no number of them cause panic": {
    features: { sendUnhealthy: true },
    ...A_80,
    field: "healthyPanicThreshold",
    usual: [],
    changed: [{}],
  },
  "PILOT_ENABLE_TELEMETRY_LABEL of clusters": {
    features: { clusterLabels: false, endpointLabels: false },
    ...S_80,
    field: "metadata",
    usual: [
      { filterMetadata: { istio: { services: [{ host: "s.example", name: "s.example", namespace: "default" }] } } },
    ],
    changed: [],
  },
  "PILOT_ENABLE_TELEMETRY_LABEL of inbound clusters": {
    features: { clusterLabels: false, endpointLabels: false },
    kind: "cluster",
    name: "inbound|80||",
    field: "services",
    usual: [[{ host: "a.example", name: "a.example", namespace: "default" }]],
    changed: [],
  },
  PILOT_ENDPOINT_TELEMETRY_LABEL: {
    features: { endpointLabels: false },
    kind: "endpoints",
    name: A_80.name,
    field: "workload",
    usual: [";;a;;Kubernetes"],
    changed: [],
  },
  LABEL_CANONICAL_SERVICES_FOR_MESH_EXTERNAL_SERVICE_ENTRIES: {
    features: { canonicalExternal: true },
    ...EXT,
    field: "workload",
    usual: [";;;;Kubernetes"],
    changed: [";default;ext;v3;Kubernetes"],
  },
  PILOT_ENABLE_METADATA_EXCHANGE: {
    features: { metadataExchange: false },
    ...S_80,
    field: "alpnProtocols",
    usual: [["istio-peer-exchange", "istio"]],
    changed: [["istio"]],
  },
  PILOT_DISABLE_MX_ALPN: {
    features: { exchangeByAlpn: false },
    ...S_80,
    field: "alpnProtocols",
    usual: [["istio-peer-exchange", "istio"]],
    changed: [["istio"]],
  },
  PILOT_MX_ADDITIONAL_LABELS: {
    features: { exchangedLabels: ["app", "zone"] },
    ...S_80,
    field: "additional_labels",
    usual: [],
    changed: [["app", "zone"]],
  },
  PILOT_ENABLE_ALPN_FILTER: {
    features: { alpnFilter: false },
    ...OUTBOUND,
    field: "upstreamProtocol",
    usual: ["HTTP11", "HTTP2"],
    changed: [],
  },
  PILOT_ENABLE_MONGO_FILTER: {
    features: { mongoFilter: false },
    kind: "listener",
    name: "10.1.1.1_27017",
    field: "statPrefix",
    usual: ["outbound|27017||a.example", "outbound|27017||a.example"],
    changed: ["outbound|27017||a.example"],
  },
  PILOT_ENABLE_MYSQL_FILTER: {
    features: { mysqlFilter: true },
    kind: "listener",
    name: "10.1.1.1_3306",
    field: "stat_prefix",
    usual: [],
    changed: ["outbound|3306||a.example"],
  },
  "PILOT_ENABLE_REDIS_FILTER sends commands by their keys": {
    features: { redisFilter: true },
    kind: "listener",
    name: "10.1.1.1_6379",
    field: "catchAllRoute",
    usual: [],
    changed: [{ cluster: "outbound|6379||a.example" }],
  },
  "PILOT_ENABLE_REDIS_FILTER spreads keys over endpoints": {
    features: { redisFilter: true },
    kind: "cluster",
    name: "outbound|6379||a.example",
    field: "lbPolicy",
    usual: ["LEAST_REQUEST"],
    changed: ["MAGLEV"],
  },
  MAX_CONNECTIONS_PER_SOCKET_EVENT_LOOP: {
    features: { connectionsPerEvent: 7 },
    kind: "listener",
    name: "virtualInbound",
    field: "maxConnectionsToAcceptPerSocketEvent",
    usual: [1],
    changed: [7],
  },
  "MAX_CONNECTIONS_PER_SOCKET_EVENT_LOOP=0 is any number": {
    features: { connectionsPerEvent: 0 },
    kind: "listener",
    name: "virtualOutbound",
    field: "maxConnectionsToAcceptPerSocketEvent",
    usual: [1],
    changed: [],
  },
  "COMPLIANCE_POLICY=fips-140-2": {
    features: { compliance: "fips-140-2" },
    proxy: "router",
    kind: "listener",
    name: "0.0.0.0_443",
    field: "tlsParams",
    usual: [{ cipherSuites: ["ECDHE-ECDSA-AES128-GCM-SHA256", "AES128-SHA"] }],
    changed: [
      {
        tlsMinimumProtocolVersion: "TLSv1_2",
        tlsMaximumProtocolVersion: "TLSv1_2",
        cipherSuites: ["ECDHE-ECDSA-AES128-GCM-SHA256"],
      },
    ],
  },
  "COMPLIANCE_POLICY=pqc": {
    features: { compliance: "pqc" },
    ...S_80,
    field: "ecdhCurves",
    usual: [],
    changed: [["X25519MLKEM768"]],
  },
  PILOT_DNS_CARES_UDP_MAX_QUERIES: {
    features: { dnsQueriesPerSocket: 7 },
    ...EXT,
    field: "udpMaxQueries",
    usual: [100],
    changed: [7],
  },
  PILOT_DNS_JITTER_DURATION: {
    features: { dnsJitterMs: 0 },
    ...EXT,
    field: "dnsJitter",
    usual: ["0.100s"],
    changed: ["0s"],
  },
  DISABLE_TRACK_REMAINING_CB_METRICS: {
    features: { trackRemaining: true },
    ...A_80,
    field: "trackRemaining",
    usual: [],
    changed: [true],
  },
  PREFER_DESTINATIONRULE_TLS_FOR_EXTERNAL_SERVICES: {
    features: { rulesForExternal: false },
    proxy: "sidecar with files",
    ...EXT,
    field: "tlsCertificateSdsSecretConfigs",
    usual: [[secret("file-cert:/c~/k")]],
    changed: [[secret("file-cert:/x/c~/x/k")]],
  },
  PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES: {
    features: { edsForHeadless: true },
    kind: "cluster",
    name: "outbound|9000||headless.default.svc.cluster.local",
    field: "type",
    usual: ["ORIGINAL_DST"],
    changed: ["EDS"],
  },
  ENABLE_LOCALITY_WEIGHTED_LB_CONFIG: {
    features: { weighLocalities: true },
    ...A_80,
    field: "localityWeightedLbConfig",
    usual: [],
    changed: [{}],
  },
  PILOT_ENABLE_ABSOLUTE_FQDN_VHOST_DOMAIN: {
    features: { absoluteNames: false },
    kind: "route",
    name: "80",
    field: "domains",
    usual: [
      ["a.example", "a.example.", "10.1.1.1"],
      ["ext.example", "ext.example."],
      ["s.example", "s.example.", "10.1.1.2"],
      ["*"],
    ],
    changed: [["a.example", "10.1.1.1"], ["ext.example"], ["s.example", "10.1.1.2"], ["*"]],
  },
  PILOT_ENABLE_ROUTE_COLLAPSE_OPTIMIZATION: {
    features: { collapseRoutes: false },
    proxy: "router",
    kind: "route",
    name: "http.80",
    field: "domains",
    usual: [["x.example", "y.example"]],
    changed: [["x.example"], ["y.example"]],
  },
  DISABLE_SHADOW_HOST_SUFFIX: {
    features: { shadowSuffix: true },
    kind: "route",
    name: "80",
    field: "disableShadowHostSuffixAppend",
    usual: [true],
    changed: [],
  },
  PILOT_SCOPE_GATEWAY_TO_NAMESPACE: {
    features: { gatewaysOfNamespace: true },
    proxy: "router",
    kind: "listener",
    name: "0.0.0.0_81",
    field: "portValue",
    usual: [81],
    changed: undefined,
  },
  "PILOT_FILTER_GATEWAY_CLUSTER_CONFIG leaves out what no route leads to": {
    features: { referencedClusters: true },
    proxy: "router",
    ...S_80,
    field: "serviceName",
    usual: [S_80.name],
    changed: undefined,
  },
  "PILOT_FILTER_GATEWAY_CLUSTER_CONFIG keeps what routes lead to": {
    features: { referencedClusters: true },
    proxy: "router",
    ...A_80,
    field: "serviceName",
    usual: [A_80.name],
    changed: [A_80.name],
  },
  ENABLE_ENHANCED_DESTINATIONRULE_MERGE: {
    features: { separateExports: false },
    kind: "cluster",
    name: "outbound|80|v1|a.example",
    field: "subset",
    usual: undefined,
    changed: ["v1"],
  },
};

function secret(name: string): JsonValue {
  const grpcServices = [{ envoyGrpc: { clusterName: "sds-grpc" } }];
  const apiConfigSource = { apiType: "GRPC", grpcServices, setNodeOnFirstMessageOnly: true, transportApiVersion: "V3" };
  return { name, sdsConfig: { apiConfigSource, resourceApiVersion: "V3" } };
}

for (const [name, { features, usual, changed, ...where }] of Object.entries(EFFECTS)) {
  test(name, () => {
    assert.deepEqual(look(where, {}), usual, "as it usually is");
    assert.deepEqual(look(where, features), changed, "with the switch");
  });
}

test("PILOT_SKIP_VALIDATE_TRUST_DOMAIN takes certificates of all trust domains", () => {
  const where = { kind: "listener", name: "virtualInbound", field: "matchSubjectAltNames" } as const;
  const [usual] = look(where, {}) ?? [];
  assert.deepEqual(usual, [{ prefix: "spiffe://cluster.local/" }]);
  assert.deepEqual(look(where, { anyTrustDomain: true }), []);
});
