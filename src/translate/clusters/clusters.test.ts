import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Cluster,
  Cluster_DiscoveryType as DiscoveryType,
  Cluster_DnsLookupFamily as DnsFamily,
  Cluster_LbPolicy as LbPolicy,
} from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { UpstreamTlsContextSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts";
import { HttpProtocolOptionsSchema } from "#gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.ts";
import { type MeshOptions, meshOf, type ProxyOptions, proxyOf } from "../../../test/support/mesh.ts";
import { object, service, workload } from "../../../test/support/objects.ts";
import { translated, unpacked } from "../../../test/support/translated.ts";

const WEB = "outbound|80||web.default.svc.cluster.local";
const web = service("web", { name: "http", port: 80 }) + workload("web-1", "10.1.0.1");
const rule = (trafficPolicy: object, more: object = {}) =>
  object("DestinationRule", "rule", { host: "web", trafficPolicy, ...more });
const clustersOf = (yaml: string, options: MeshOptions & { readonly proxy?: ProxyOptions } = {}) =>
  translated(meshOf(yaml, options), proxyOf({ ip: "10.9.0.1", ...options.proxy }));

function tlsOf(cluster: Cluster, match?: string) {
  const socket = cluster.transportSocketMatches.find(({ name }) => name === match)?.transportSocket;
  const config = (match === undefined ? cluster.transportSocket : socket)?.configType;
  return unpacked(UpstreamTlsContextSchema, config?.case === "typedConfig" ? config.value : undefined);
}

function namesOf(tls: ReturnType<typeof tlsOf>) {
  const context = tls.commonTlsContext?.validationContextType;
  if (context?.case !== "combinedValidationContext") return undefined;
  return context.value.defaultValidationContext?.matchSubjectAltNames.map(({ matchPattern }) => matchPattern.value);
}

function protocolOf(cluster: Cluster) {
  const [options] = Object.values(cluster.typedExtensionProtocolOptions);
  const protocol = options && unpacked(HttpProtocolOptionsSchema, options).upstreamProtocolOptions;
  return protocol?.case === "explicitHttpConfig" ? protocol.value.protocolConfig.case : protocol?.case;
}

test("endpoints with a proxy of the mesh get mutual TLS with their identities, the others plain text", () => {
  const cluster = clustersOf(web).cluster(WEB);
  const tls = tlsOf(cluster, "tlsMode-istio");
  assert.equal(tls.sni, "outbound_.80_._.web.default.svc.cluster.local");
  assert.deepEqual(tls.commonTlsContext?.alpnProtocols, ["istio"]);
  assert.deepEqual(namesOf(tls), ["spiffe://cluster.local/ns/default/sa/web"]);
  assert.deepEqual(
    cluster.transportSocketMatches.map(({ name }) => name),
    ["tlsMode-istio", "tlsMode-disabled"],
  );
});

test("no mutual TLS where a policy, a rule or the mesh turns it off", () => {
  const disabled = object("PeerAuthentication", "off", { mtls: { mode: "DISABLE" } });
  for (const cluster of [
    clustersOf(web + disabled).cluster(WEB),
    clustersOf(web + rule({ tls: { mode: "DISABLE" } })).cluster(WEB),
    clustersOf(web, { mesh: { enableAutoMtls: false } }).cluster(WEB),
  ]) {
    assert.equal(cluster.transportSocket, undefined);
    assert.deepEqual(cluster.transportSocketMatches, []);
  }
});

test("a rule can ask for mutual TLS to every endpoint, and name the servers", () => {
  const asked = { tls: { mode: "ISTIO_MUTUAL", subjectAltNames: ["spiffe://x/y"], sni: "other" } };
  const tls = tlsOf(clustersOf(web + rule(asked)).cluster(WEB));
  assert.deepEqual(namesOf(tls), ["spiffe://x/y"]);
  assert.equal(tls.sni, "other");
});

test("TLS to a server outside takes its name from the request, unless the rule has one", () => {
  const options = (tls: object) => {
    const [packed] = Object.values(
      clustersOf(web + rule({ tls: { mode: "SIMPLE", ...tls } })).cluster(WEB).typedExtensionProtocolOptions,
    );
    return packed && unpacked(HttpProtocolOptionsSchema, packed).upstreamHttpProtocolOptions;
  };
  assert.equal(options({})?.autoSni, true);
  assert.equal(options({})?.autoSanValidation, true);
  assert.equal(options({ insecureSkipVerify: true })?.autoSanValidation, false);
  assert.equal(options({ sni: "web.example.com" })?.autoSni, undefined);
});

test("credentials are for gateways, and for sidecars that a rule selects", () => {
  const tls = { tls: { mode: "SIMPLE", credentialName: "secret" } };
  const hasTls = (more: object, proxy: ProxyOptions) =>
    clustersOf(web + rule(tls, more), { proxy }).cluster(WEB).transportSocket !== undefined;
  assert.equal(hasTls({}, {}), false);
  assert.equal(hasTls({}, { type: "router" }), true);
  assert.equal(hasTls({ workloadSelector: { matchLabels: { app: "a" } } }, { labels: { app: "a" } }), true);
});

test("HTTP/2 by the port's protocol or by a rule, the client's own where it is detected", () => {
  const ports = [
    { name: "http", port: 80 },
    { name: "grpc", port: 81 },
    { name: "tcp", port: 82 },
    { name: "unnamed", port: 83 },
  ];
  const protocols = (yaml: string, options: MeshOptions & { readonly proxy?: ProxyOptions } = {}) => {
    const found = clustersOf(service("web", ...ports) + yaml, options);
    return ports.map(({ port }) => protocolOf(found.cluster(`outbound|${port}||web.default.svc.cluster.local`)));
  };
  assert.deepEqual(protocols(""), [undefined, "http2ProtocolOptions", undefined, "useDownstreamProtocolConfig"]);
  assert.deepEqual(protocols(rule({ connectionPool: { http: { h2UpgradePolicy: "UPGRADE" } } })), [
    "http2ProtocolOptions",
    "http2ProtocolOptions",
    "http2ProtocolOptions",
    "useDownstreamProtocolConfig",
  ]);
  assert.equal(protocols("", { mesh: { h2UpgradePolicy: "UPGRADE" } })[0], "http2ProtocolOptions");
  assert.equal(protocols("", { proxy: { type: "router" } })[3], undefined);
});

test("zero is no limit", () => {
  const pool = { tcp: { maxConnections: 0 }, http: { http2MaxRequests: 7, maxRequestsPerConnection: 0 } };
  const cluster = clustersOf(web + rule({ connectionPool: pool })).cluster(WEB);
  const [thresholds] = cluster.circuitBreakers?.thresholds ?? [];
  assert.equal(thresholds?.maxConnections, 4_294_967_295);
  assert.equal(thresholds?.maxRequests, 7);
  assert.deepEqual(cluster.typedExtensionProtocolOptions, {});
});

test("ejection by success rate stays off, and no errors means no ejection by them", () => {
  const outlierDetection = { consecutive5xxErrors: 0, consecutiveGatewayErrors: 3 };
  const found = clustersOf(web + rule({ outlierDetection })).cluster(WEB).outlierDetection;
  assert.equal(found?.enforcingSuccessRate, 0);
  assert.equal(found?.enforcingConsecutive5xx, 0);
  assert.equal(found?.enforcingConsecutiveGatewayFailure, 100);
});

const entry = (spec: object, name = "ext") =>
  object("ServiceEntry", name, {
    hosts: ["ext.example.com"],
    ports: [{ number: 80, name: "http", protocol: "HTTP" }],
    ...spec,
  });
const EXT = "outbound|80||ext.example.com";

test("hosts that are looked up have their endpoints in the cluster; without any there is no cluster", () => {
  const cluster = clustersOf(entry({ resolution: "DNS" })).cluster(EXT);
  assert.deepEqual(cluster.clusterDiscoveryType, { case: "type", value: DiscoveryType.STRICT_DNS });
  assert.equal(cluster.loadAssignment?.endpoints.length, 1);
  const subsets = object("DestinationRule", "ext", {
    host: "ext.example.com",
    subsets: [{ name: "none", labels: { version: "none" } }],
  });
  const { clusters } = clustersOf(entry({ resolution: "DNS", endpoints: [{ address: "a.example.com" }] }) + subsets);
  assert.equal(clusters.has("outbound|80|none|ext.example.com"), false);
  assert.equal(clusters.has(EXT), true);
});

test("a workload that only the gateway of its network finds is no name to look up", () => {
  const labels = { app: "ext" };
  const workloads = [{ address: "a.example.com" }, { network: "far" }].map((place, i) =>
    object("WorkloadEntry", `w${i}`, { ...place, labels }),
  );
  const yaml = entry({ resolution: "DNS", workloadSelector: { labels } }) + workloads.join("");
  const groups = clustersOf(yaml).cluster(EXT).loadAssignment?.endpoints ?? [];
  assert.equal(groups.flatMap(({ lbEndpoints }) => lbEndpoints).length, 1);
});

test("a host looked up for one address only has one name, which is all Envoy takes", () => {
  const named = (name: string) =>
    entry({ resolution: "DNS_ROUND_ROBIN", endpoints: [{ address: `${name}.example.com` }] }, name);
  const cluster = clustersOf(named("a") + named("b")).cluster(EXT);
  assert.deepEqual(cluster.clusterDiscoveryType, { case: "type", value: DiscoveryType.LOGICAL_DNS });
  assert.equal(cluster.loadAssignment?.endpoints.flatMap(({ lbEndpoints }) => lbEndpoints).length, 1);
});

test("a host without endpoints goes to the address that was called", () => {
  const cluster = clustersOf(entry({ resolution: "NONE" })).cluster(EXT);
  assert.deepEqual(cluster.clusterDiscoveryType, { case: "type", value: DiscoveryType.ORIGINAL_DST });
  assert.equal(cluster.lbPolicy, LbPolicy.CLUSTER_PROVIDED);
});

test("UDP ports have no cluster", () => {
  const { clusters } = clustersOf(service("dns", { name: "udp", port: 53, protocol: "UDP" }));
  assert.deepEqual(
    [...clusters.keys()].filter((name) => name.startsWith("outbound|")),
    [],
  );
});

test("a workload has a cluster per port of the application, whichever services name it", () => {
  const yaml =
    service("web", { name: "http", port: 80, targetPort: 8080 }, { name: "other", port: 81, targetPort: 8080 }) +
    object("Service", "alias", { selector: { app: "web" }, ports: [{ name: "http", port: 90, targetPort: 8080 }] }) +
    workload("web-1", "10.1.0.1");
  const { clusters } = clustersOf(yaml, { proxy: { ip: "10.1.0.1" } });
  assert.deepEqual(
    [...clusters.keys()].filter((name) => name.startsWith("inbound|")),
    ["inbound|8080||"],
  );
});

test("the budget of retries counts at both sides", () => {
  const yaml = web + rule({ retryBudget: { percent: 25, minRetryConcurrency: 5 } });
  const budgetOf = (cluster: Cluster) => cluster.circuitBreakers?.thresholds[0]?.retryBudget;
  for (const cluster of [
    clustersOf(yaml).cluster(WEB),
    clustersOf(yaml, { proxy: { ip: "10.1.0.1" } }).cluster("inbound|80||"),
  ]) {
    assert.equal(budgetOf(cluster)?.budgetPercent?.value, 25);
    assert.equal(budgetOf(cluster)?.minRetryConcurrency, 5);
  }
});

test("a subset of a service that goes to the original destination goes there too", () => {
  const subsets = [{ name: "v1", trafficPolicy: { loadBalancer: { simple: "ROUND_ROBIN" } } }];
  const yaml = web + rule({ loadBalancer: { simple: "PASSTHROUGH" } }, { subsets });
  const cluster = clustersOf(yaml).cluster("outbound|80|v1|web.default.svc.cluster.local");
  assert.deepEqual(cluster.clusterDiscoveryType, { case: "type", value: DiscoveryType.ORIGINAL_DST });
  assert.equal(cluster.lbPolicy, LbPolicy.CLUSTER_PROVIDED);
});

test("a subset that goes to the original destination does so on ports with settings of their own, too", () => {
  const portLevelSettings = [{ port: { number: 80 }, loadBalancer: { simple: "ROUND_ROBIN" } }];
  const passing = { loadBalancer: { simple: "PASSTHROUGH" }, portLevelSettings };
  const yaml = web + rule({ tls: { mode: "DISABLE" } }, { subsets: [{ name: "v1", trafficPolicy: passing }] });
  const cluster = clustersOf(yaml).cluster("outbound|80|v1|web.default.svc.cluster.local");
  assert.deepEqual(cluster.clusterDiscoveryType, { case: "type", value: DiscoveryType.ORIGINAL_DST });
  assert.equal(cluster.lbPolicy, LbPolicy.CLUSTER_PROVIDED);
});

test("with addresses of both families hosts are looked up in both, and applications called from both", () => {
  const yaml = entry({ resolution: "DNS" }) + web;
  const shown = (dualStack: boolean) => {
    const proxy = { ...proxyOf({ ip: "10.1.0.1" }), addresses: ["10.1.0.1", "fd00::1"] };
    const { cluster } = translated(meshOf(yaml, { features: { dualStack } }), proxy);
    const sources = cluster("inbound|80||").upstreamBindConfig?.extraSourceAddresses ?? [];
    return [cluster(EXT).dnsLookupFamily, sources.map(({ address }) => address?.address)];
  };
  assert.deepEqual(shown(true), [DnsFamily.ALL, ["::6"]]);
  assert.deepEqual(shown(false), [DnsFamily.V4_ONLY, []]);
});

test("a cluster with one name keeps it where shares of localities leave nothing, since Envoy wants one", () => {
  const localityLbSetting = { distribute: [{ from: "r1/*", to: { "r1/*": 80, "r2/*": 20 } }] };
  const policy = { loadBalancer: { localityLbSetting }, outlierDetection: {} };
  const ruled = object("DestinationRule", "ext", { host: "ext.example.com", trafficPolicy: policy });
  const named = (resolution: string, locality: string) => {
    const { cluster } = clustersOf(entry({ resolution }) + ruled, { proxy: { locality } });
    return cluster(EXT).loadAssignment?.endpoints.map(({ lbEndpoints }) => lbEndpoints.length);
  };
  assert.deepEqual(named("DNS_ROUND_ROBIN", "r1/z1"), [1]);
  assert.deepEqual(named("DNS_ROUND_ROBIN", "r3"), [1]);
  assert.deepEqual(named("DNS", "r1/z1"), [0]);
});

test("endpoints found by DNS are not told apart by labels", () => {
  const ports = [{ number: 80, name: "http", protocol: "HTTP" }];
  const endpoints = [
    { address: "a.com", labels: { version: "v1" } },
    { address: "b.com", labels: { version: "v2" } },
  ];
  const entry = object("ServiceEntry", "out", { hosts: ["out.com"], ports, resolution: "DNS", endpoints });
  const priorities = (localityLbSetting: object) => {
    const policy = { loadBalancer: { localityLbSetting }, outlierDetection: {} };
    const ruled = object("DestinationRule", "out", { host: "out.com", trafficPolicy: policy });
    const { loadAssignment } = clustersOf(entry + ruled).cluster("outbound|80||out.com");
    return loadAssignment?.endpoints.map(({ priority, lbEndpoints }) => [priority, lbEndpoints.length]);
  };
  assert.deepEqual(priorities({ failoverPriority: ["version=v2"] }), [[0, 2]]);
});

test("a proxy that wants to know of some networks only gets their endpoints, by DNS too", () => {
  const ports = [{ number: 80, name: "http", protocol: "HTTP" }];
  const endpoints = [
    { address: "a.com", network: "n1", labels: { version: "v1" } },
    { address: "b.com", network: "n2", labels: { version: "v2" } },
    { address: "c.com", labels: { version: "v2" } },
  ];
  const entry = object("ServiceEntry", "out", { hosts: ["out.com"], ports, resolution: "DNS", endpoints });
  const subsets = ["v1", "v2"].map((version) => ({ name: version, labels: { version } }));
  const mesh = meshOf(entry + object("DestinationRule", "out", { host: "out.com", subsets }));
  const shown = (metadata: Readonly<Record<string, unknown>>) => {
    const { clusters } = translated(mesh, proxyOf({ type: "router", metadata }));
    const outside = [...clusters].filter(([name]) => name.endsWith("out.com"));
    const counts = outside.map(([name, { loadAssignment }]) => [
      name.split("|")[2],
      loadAssignment?.endpoints.reduce((count, { lbEndpoints }) => count + lbEndpoints.length, 0),
    ]);
    return Object.fromEntries(counts);
  };
  // One snapshot, so that what is kept of one proxy does not reach the other.
  const all = { "": 3, v1: 1, v2: 2 };
  assert.deepEqual(shown({}), all);
  assert.deepEqual(shown({ REQUESTED_NETWORK_VIEW: "n2" }), { "": 2, v2: 2 });
  assert.deepEqual(shown({ REQUESTED_NETWORK_VIEW: "n2,n1" }), all);
});

test("headers keep their case where a port may speak HTTP, whatever protocol the client's is", () => {
  const ports = [
    { number: 80, name: "http", protocol: "HTTP" },
    { number: 81, name: "mongo", protocol: "MONGO" },
  ];
  const entry = object("ServiceEntry", "out", { hosts: ["out.com"], ports, resolution: "DNS" });
  const policy = { connectionPool: { http: { useClientProtocol: true } } };
  const yaml = entry + object("DestinationRule", "out", { host: "out.com", trafficPolicy: policy });
  const mesh = { defaultConfig: { proxyHeaders: { preserveHttp1HeaderCase: true } } };
  const keepsCase = (port: number) => {
    const [any] = Object.values(
      clustersOf(yaml, { mesh }).cluster(`outbound|${port}||out.com`).typedExtensionProtocolOptions,
    );
    const options = unpacked(HttpProtocolOptionsSchema, any).upstreamProtocolOptions;
    assert.equal(options.case, "useDownstreamProtocolConfig");
    return options.value?.httpProtocolOptions?.headerKeyFormat !== undefined;
  };
  assert.deepEqual([keepsCase(80), keepsCase(81)], [true, false]);
});

test("a router goes to the port that was called, where a rule sends it to the original destination", () => {
  const ports = [{ number: 80, name: "http", protocol: "HTTP", targetPort: 81 }];
  const entry = object("ServiceEntry", "out", { hosts: ["out.com"], ports, resolution: "NONE" });
  const policy = { loadBalancer: { simple: "PASSTHROUGH" } };
  const subsets = [{ name: "v1" }];
  const yaml = entry + object("DestinationRule", "out", { host: "out.com", trafficPolicy: policy, subsets });
  const config = (type: "sidecar" | "router", subset = "") =>
    clustersOf(yaml, { proxy: { type } }).cluster(`outbound|80|${subset}|out.com`).lbConfig.case;
  assert.deepEqual([config("sidecar"), config("router")], ["originalDstLbConfig", undefined]);
  assert.equal(config("router", "v1"), "originalDstLbConfig");
});

test("clusters for server names are called and described as others are, without TLS of their own", () => {
  const tls = { mode: "AUTO_PASSTHROUGH" };
  const port = { number: 15443, name: "tls", protocol: "TLS" };
  const gateway = object("Gateway", "east", { servers: [{ port, hosts: ["*.local"], tls }] });
  const clusters = clustersOf(web + rule({ tls: { mode: "SIMPLE" } }) + gateway, {
    mesh: { outboundClusterStatName: "%SERVICE%_%SERVICE_PORT%" },
    proxy: { type: "router" },
  });
  const cluster = clusters.cluster("outbound_.80_._.web.default.svc.cluster.local");
  assert.equal(cluster.altStatName, "web.default_80;");
  assert.equal(cluster.metadata?.filterMetadata.istio?.alpn_override, "false");
  assert.equal(cluster.transportSocket, undefined);
});

test("TLS that is passed on by its server name goes only to endpoints that take mutual TLS, also where DNS finds them", () => {
  const port = { number: 15443, name: "tls", protocol: "TLS" };
  const servers = [{ port, hosts: ["*.mesh"], tls: { mode: "AUTO_PASSTHROUGH" } }];
  const entry = (name: string, endpoints: readonly object[]) =>
    object("ServiceEntry", name, {
      hosts: [`${name}.mesh`],
      location: "MESH_INTERNAL",
      resolution: "DNS",
      ports: [{ number: 80, name: "http", protocol: "HTTP" }],
      endpoints,
    });
  const secured = { address: "secured.example", labels: { "security.istio.io/tlsMode": "istio" } };
  const plain = { address: "plain.example" };
  const yaml = entry("mixed", [secured, plain]) + entry("plain", [plain]) + object("Gateway", "east", { servers });
  const { cluster, clusters } = clustersOf(yaml, { proxy: { type: "router" } });
  const hosts = (name: string) => cluster(name).loadAssignment?.endpoints.flatMap(({ lbEndpoints }) => lbEndpoints);
  assert.equal(hosts("outbound_.80_._.mixed.mesh")?.length, 1);
  assert.equal(hosts("outbound|80||mixed.mesh")?.length, 2);
  assert.ok(!clusters.has("outbound_.80_._.plain.mesh"), "Envoy refuses some clusters that have no endpoint");
});
