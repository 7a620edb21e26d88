/**
 * Configuration that passes the checks, or most of it, but is at the edge of what Envoy takes. What becomes of it is not
 * written down: Envoy has to accept it, and the mesh around it has to be there.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseObject } from "#config/kinds/parse-object.ts";
import { meshConfigOf } from "#config/mesh/mesh-config.ts";
import { buildSnapshot } from "#convert/snapshot.ts";
import { readDocuments } from "#lib/yaml/read.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { generate } from "../../conformance/generate.ts";
import { acceptedByEnvoy, type EnvoyResources, NO_ENVOY } from "../../support/envoy.ts";
import { proxyOf } from "../../support/mesh.ts";
import { object, workload } from "../../support/objects.ts";

const WEB =
  object("Service", "web", {
    clusterIP: "10.96.0.9",
    selector: { app: "web" },
    ports: [
      { name: "http", port: 80 },
      { name: "tls", port: 443 },
      { name: "tcp", port: 90 },
      { name: "any", port: 91 },
    ],
  }) + workload("web-1", "10.1.0.1");

const PROXIES: Readonly<Record<string, MeshProxy>> = {
  client: proxyOf({ ip: "10.9.0.1", name: "client-1" }),
  server: proxyOf({ ip: "10.1.0.1", name: "web-1", labels: { app: "web" } }),
  dual: { ...proxyOf({ name: "dual-1", metadata: { DNS_CAPTURE: "true" } }), addresses: ["10.9.0.2", "fd00::9"] },
  router: proxyOf({ type: "router", ip: "10.9.0.3", name: "router-1" }),
  uncaptured: proxyOf({ ip: "10.9.0.4", name: "uncaptured-1", metadata: { INTERCEPTION_MODE: "NONE" } }),
};

const to = (more: object = {}) => ({ destination: { host: "web", ...more } });
const http = (...routes: object[]) =>
  object("VirtualService", "web", { hosts: ["web"], http: routes.map((route) => ({ route: [to()], ...route })) });
const answer = (route: object) => object("VirtualService", "web", { hosts: ["web"], http: [route] });
const matched = (...matches: object[]) => http(...matches.map((match) => ({ match: [match] })));
const tls = (name: string, hosts: string[], ...sniHosts: string[][]) =>
  object("VirtualService", name, {
    hosts,
    gateways: ["mesh", "gate"],
    tls: sniHosts.map((names) => ({ match: [{ port: 443, sniHosts: names }], route: [to({ port: { number: 443 } })] })),
  });
const tcp = (...subnets: string[][]) =>
  object("VirtualService", "web", {
    hosts: ["web"],
    tcp: subnets.map((destinationSubnets) => ({
      match: [{ destinationSubnets }],
      route: [to({ port: { number: 90 } })],
    })),
  });
const rule = (trafficPolicy: object, more: object = {}) =>
  object("DestinationRule", "web", { host: "web", trafficPolicy, ...more });
const hashed = (consistentHash: object) => rule({ loadBalancer: { consistentHash } });
const gate = (...servers: object[]) => object("Gateway", "gate", { servers });
const server = (number: number, protocol: string, host: string, more: object = {}) => ({
  port: { number, name: `p${number}-${host.replace(/[^a-z]/g, "x")}`.toLowerCase(), protocol },
  hosts: [host],
  ...more,
});
const files = { serverCertificate: "/cert.pem", privateKey: "/key.pem" };
const terminated = (more: object = {}) => ({ tls: { mode: "SIMPLE", ...files, ...more } });
const passed = { tls: { mode: "PASSTHROUGH" } };
const bound = (...hosts: string[]) =>
  object("VirtualService", "bound", { hosts, gateways: ["gate"], http: [{ route: [to()] }] });
const entry = (name: string, spec: object) =>
  object("ServiceEntry", name, {
    hosts: [`${name}.example.com`],
    ports: [{ number: 90, name: "tcp", protocol: "TCP" }],
    ...spec,
  });
const at = (...addresses: string[]) => ({ addresses, resolution: "NONE" });
const huge = { ...to(), weight: 2_147_483_647 };

/** Objects besides `WEB`, and perhaps a mesh config. */
const CASES: Readonly<Record<string, string | { readonly objects?: string; readonly mesh: object }>> = {
  "server names of one chain again in another": tls(
    "web",
    ["*.example.com", "web.default.svc.cluster.local"],
    ["web.default.svc.cluster.local", "x.example.com"],
    ["X.example.com"],
    ["*.example.com"],
  ),
  "server names of a gateway again in another virtual service":
    gate(server(443, "TLS", "*.example.com", passed)) +
    tls("a", ["x.example.com", "y.example.com"], ["x.example.com", "y.example.com"]) +
    tls("b", ["x.example.com"], ["x.example.com"]),
  "hosts of a gateway in upper and lower case":
    gate(server(443, "HTTPS", "Foo.example.com", terminated()), server(443, "HTTPS", "foo.example.com", terminated())) +
    bound("foo.example.com"),
  "any host beside some": gate(server(443, "HTTPS", "*", terminated()), server(443, "HTTPS", "*.com", terminated())),
  "one host for two namespaces": gate(
    server(443, "HTTPS", "a/x.com", terminated()),
    server(443, "HTTPS", "b/x.com", terminated()),
  ),
  "TLS that ends and TLS that is passed on": gate(
    server(443, "HTTPS", "x.com", terminated()),
    server(443, "TLS", "y.com", terminated()),
    server(443, "TLS", "z.com", passed),
  ),
  "plain text and TLS on one port": gate(server(443, "HTTP", "x.com"), server(443, "HTTPS", "y.com", terminated())),
  "cipher suites that are none": gate(server(443, "HTTPS", "x.com", terminated({ cipherSuites: ["NONE", "NONE"] }))),
  "pins that are none": gate(
    server(443, "HTTPS", "x.com", {
      tls: { mode: "MUTUAL", credentialName: "c", verifyCertificateSpki: ["x"], verifyCertificateHash: ["y"] },
    }),
  ),
  "one port on all addresses, twice": gate(
    server(8080, "HTTP", "x.com", { bind: "0.0.0.0" }),
    server(8080, "HTTP", "y.com"),
    server(8080, "HTTP", "z.com", { bind: "::1" }),
  ),
  "a host of a gateway twice": gate(server(80, "HTTP", "*")) + bound("x.com", "X.com", "1.2.3.4"),
  "ranges of one chain again in another": tcp(["10.0.0.0/8", "11.0.0.0/8"], ["10.1.2.3/8"], ["0.0.0.0/0"]),
  "an address as two ranges": tcp(["10.0.0.1", "10.0.0.1/32"]),
  "ranges of one entry again in another": entry("a", at("10.0.0.0/8")) + entry("b", at("10.0.0.0/8", "11.0.0.0/8")),
  "ranges of both families": entry("a", at("fd00::/8", "10.0.0.0/8")),
  "an address in two ways": entry("a", at("fd00::1", "fd00:0::1", "::ffff:10.0.0.1", "10.0.0.1")),
  "an address of two entries": entry("a", at("10.8.8.8")) + entry("b", at("10.8.8.8")),
  "all addresses": entry("a", at("0.0.0.0")) + entry("b", at("::")) + entry("c", at("0.0.0.0/0")),
  "ports of the proxy itself": object("Service", "own", {
    clusterIP: "10.96.1.1",
    ports: [15001, 15006, 15021, 15090].map((port, i) => ({ name: `${i % 2 ? "tcp" : "http"}-${port}`, port })),
  }),
  "one address for two services": ["a", "b"]
    .map((name) => object("Service", name, { clusterIP: "10.96.1.1", ports: [{ name: "tcp", port: 90 }] }))
    .join(""),
  "commands of headers that Envoy does not know": http({
    headers: { request: { set: { a: "%FOO%", b: "%REQ%" } }, response: { add: { c: "%REQ(x?y?z)%", d: "5%%" } } },
    route: [
      { ...to(), weight: 1, headers: { request: { set: { e: "%FOO(x)%" } } } },
      { ...to(), weight: 1 },
    ],
  }),
  "headers with odd names": http({ headers: { request: { set: { "x y": "1", "x\ny": "1" }, remove: ["a\nb"] } } }),
  "parameters with no name and with a long one": matched(
    { queryParams: { "": { exact: "1" } } },
    { queryParams: { ["q".repeat(2000)]: { exact: "1" } } },
  ),
  "paths that begin with no slash": matched(
    { uri: { exact: "" } },
    { uri: { prefix: "" } },
    { uri: { prefix: "x" } },
    { uri: { exact: "a?b#c" } },
  ),
  "statistics with an odd name": matched({ statPrefix: "a b\nc", uri: { prefix: "/x" } }),
  "line breaks in a rewritten request": http({ rewrite: { uri: "/a\nb", authority: "a\nb" } }),
  "line breaks in a redirect": answer({ redirect: { uri: "/a\nb", authority: "a\nb" } }),
  "a part that the rewritten path does not have": http({
    rewrite: { uriRegexRewrite: { match: "a", rewrite: "\\5" } },
  }),
  "a body in bytes": answer({ directResponse: { status: 200, body: { bytes: "aGk=" } } }),
  "many attempts": http({ retries: { attempts: 2_147_483_647 } }),
  "a tiny share of copies": http({ mirrors: [{ ...to(), percentage: { value: 0.00001 } }] }),
  "weights with a large sum":
    http({ route: [huge, huge, huge] }) +
    object("VirtualService", "db", { hosts: ["web"], tcp: [{ route: [huge, huge, huge] }] }),
  "endpoints with a large sum of weights": entry("a", {
    resolution: "STATIC",
    endpoints: ["10.1.1.1", "10.1.1.2"].map((address) => ({ address, weight: 4_294_967_295 })),
  }),
  "a socket with a long path": entry("a", {
    resolution: "STATIC",
    ports: [{ number: 80, name: "http", protocol: "HTTP" }],
    endpoints: [{ address: `unix:///${"x".repeat(200)}` }],
  }),
  "addresses as names": entry("a", { resolution: "DNS", endpoints: [{ address: "1.2.3.4" }, { address: "fd00::1" }] }),
  "hashes by nothing": hashed({ httpHeaderName: "" }) + hashed({ httpQueryParameterName: "" }),
  "a hash by a header with a line break": hashed({ httpHeaderName: "a\nb" }),
  "a hash by an odd cookie": hashed({ httpCookie: { name: "a b\nc", path: "x\ny", ttl: "0s" } }),
  "hashes where the address is given":
    entry("a", at("10.8.8.8")) +
    object("DestinationRule", "a", {
      host: "a.example.com",
      trafficPolicy: { loadBalancer: { consistentHash: { useSourceIp: true } } },
    }),
  "large limits": rule({
    connectionPool: {
      tcp: { maxConnections: 2_147_483_647, tcpKeepalive: { probes: 4_294_967_295, time: "2000000h" } },
      http: {
        maxConcurrentStreams: 2_147_483_647,
        h2UpgradePolicy: "UPGRADE",
        maxRequestsPerConnection: 2_147_483_647,
      },
    },
    retryBudget: { percent: 300 },
  }),
  "a long server name": rule({ tls: { mode: "SIMPLE", sni: "x".repeat(300) } }),
  "a long host": entry("a", {
    hosts: [`${"a.".repeat(120)}example.com`],
    location: "MESH_INTERNAL",
    resolution: "STATIC",
    endpoints: [{ address: "10.1.1.1", serviceAccount: "a" }],
  }),
  "policies for ports of the proxy itself": object("PeerAuthentication", "web", {
    selector: { matchLabels: { app: "web" } },
    portLevelMtls: { 80: { mode: "STRICT" }, 7777: { mode: "DISABLE" }, 15001: { mode: "STRICT" } },
  }),
  "a log with commands that Envoy does not know": {
    mesh: { accessLogFile: "/dev/stdout", accessLogFormat: "%FOO% 100% %REQ% %PROTOCOL%" },
  },
  "a JSON log with all kinds of values": {
    mesh: {
      accessLogFile: "/dev/stdout",
      accessLogEncoding: "JSON",
      accessLogFormat: '{"a": "%FOO%", "b": [1, {"c": null, "d": "%"}], "e": true}',
    },
  },
  "names looked up all the time": { objects: entry("a", { resolution: "DNS" }), mesh: { dnsRefreshRate: "0s" } },
  "cipher suites of the mesh that are none": { mesh: { meshMTLS: { cipherSuites: ["NONE"] } } },
  "statistics without a name": { mesh: { inboundClusterStatName: "%SERVICE%" } },
  "tags and samples that are none": {
    mesh: {
      defaultConfig: {
        tracing: {
          sampling: -5,
          customTags: {
            "": { literal: { value: "x" } },
            a: { header: {} },
            b: { environment: {} },
            c: { literal: {} },
          },
        },
        proxyHeaders: { server: { value: "a\nb" } },
      },
    },
  },
};

/** Objects that the checks refuse are left out, as sources do. */
function snapshotOf(yaml: string, mesh: object): Snapshot {
  const config = meshConfigOf(mesh);
  assert.ok(config.value, JSON.stringify(config.problems));
  const objects = readDocuments(yaml).flatMap(({ value }) => {
    if (value === null || value === undefined) return [];
    const { object: parsed, problems } = parseObject(value, { file: "edge.yaml", line: 1 });
    return parsed === undefined || problems.some(({ severity }) => severity === "error") ? [] : [parsed];
  });
  return buildSnapshot({ objects, mesh: config.value, features: DEFAULT_FEATURES, previous: undefined });
}

function resourcesOf(snapshot: Snapshot, proxy: MeshProxy): EnvoyResources {
  const { clusters, listeners, routes, endpointsOf } = generate(snapshot, proxy);
  assert.ok(clusters.has("outbound|80||web.default.svc.cluster.local"));
  return {
    clusters: [...clusters.values()],
    listeners: [...listeners.values()],
    routes: [...routes.values()],
    endpoints: [...clusters.keys()].flatMap((name) => endpointsOf(name) ?? []),
  };
}

test("Envoy accepts what is at the edge", { skip: NO_ENVOY }, async () => {
  const accepted = new Map<string, EnvoyResources>();
  for (const [name, given] of Object.entries(CASES)) {
    const { objects = "", mesh } = typeof given === "string" ? { objects: given, mesh: {} } : given;
    const snapshot = snapshotOf(WEB + objects, mesh);
    for (const [proxy, node] of Object.entries(PROXIES)) {
      accepted.set(`${name}/${proxy}`, resourcesOf(snapshot, node));
    }
  }
  await acceptedByEnvoy(accepted);
});
