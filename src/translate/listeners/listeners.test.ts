import assert from "node:assert/strict";
import { test } from "node:test";
import { Cluster_DnsLookupFamily } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import type { FilterChain } from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import type { Listener } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { HttpConnectionManagerSchema } from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import { TcpProxySchema } from "#gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.ts";
import { type MeshOptions, meshOf, type ProxyOptions, proxyOf } from "../../../test/support/mesh.ts";
import { object, service, workload } from "../../../test/support/objects.ts";
import { translated, unpacked } from "../../../test/support/translated.ts";

type Options = MeshOptions & { readonly proxy?: ProxyOptions };
const listenersOf = (yaml: string, options: Options = {}) =>
  translated(meshOf(yaml, options), proxyOf({ ip: "10.9.0.1", ...options.proxy }));
const names = (yaml: string, options: Options = {}) =>
  [...listenersOf(yaml, options).listeners.keys()].filter((name) => !name.startsWith("virtual"));

const at = (name: string, clusterIP: string, ...ports: object[]) =>
  object("Service", name, { clusterIP, selector: { app: name }, ports });
const entry = (name: string, spec: object) => object("ServiceEntry", name, { hosts: [`${name}.example.com`], ...spec });

/** `http ROUTES` or `tcp CLUSTER`, by the last filter of the chain. */
function target(chain: FilterChain | undefined): string {
  const config = chain?.filters.at(-1)?.configType;
  const any = config?.case === "typedConfig" ? config.value : undefined;
  if (any?.typeUrl.endsWith(".TcpProxy")) {
    const { clusterSpecifier } = unpacked(TcpProxySchema, any);
    return `tcp ${clusterSpecifier.case === "cluster" ? clusterSpecifier.value : clusterSpecifier.case}`;
  }
  const { routeSpecifier } = unpacked(HttpConnectionManagerSchema, any);
  return `http ${routeSpecifier.case === "rds" ? routeSpecifier.value.routeConfigName : "inline"}`;
}
const targets = ({ filterChains }: Listener) => filterChains.map(target);
const inspectors = ({ listenerFilters }: Listener) => listenerFilters.map(({ name }) => name.split(".").at(-1));

test("HTTP services of a port share a listener on all addresses, others have one on their own", () => {
  const yaml =
    at("a", "10.96.0.1", { name: "http", port: 80 }) +
    at("b", "10.96.0.2", { name: "http", port: 80 }, { name: "tcp", port: 90 }) +
    at("c", "10.96.0.3", { name: "auto", port: 91 });
  assert.deepEqual(names(yaml).sort(), ["0.0.0.0_80", "10.96.0.2_90", "10.96.0.3_91"]);
  const { listener } = listenersOf(yaml);
  assert.deepEqual(targets(listener("0.0.0.0_80")), ["http 80"]);
  assert.deepEqual(targets(listener("10.96.0.2_90")), ["tcp outbound|90||b.default.svc.cluster.local"]);
  assert.deepEqual(targets(listener("10.96.0.3_91")), ["http c.default.svc.cluster.local:91"]);
});

test("where the protocol is not declared, what is no HTTP goes to the service as it is", () => {
  const listener = listenersOf(at("c", "10.96.0.3", { name: "auto", port: 91 })).listener("10.96.0.3_91");
  assert.deepEqual(inspectors(listener), ["http_inspector"]);
  assert.equal(target(listener.defaultFilterChain), "tcp outbound|91||c.default.svc.cluster.local");
  assert.equal(listener.continueOnListenerFiltersTimeout, true);
});

test("where nothing is captured, TLS of a service with addresses and ranges is taken with and without its server name", () => {
  const ports = [{ number: 90, name: "tls", protocol: "TLS" }];
  const yaml = entry("a", { addresses: ["10.7.0.1", "10.8.0.0/16"], ports, resolution: "STATIC" });
  const { listener } = listenersOf(yaml, { proxy: { metadata: { INTERCEPTION_MODE: "NONE" } } });
  const made = listener("127.0.0.1_90");
  assert.deepEqual(
    made.filterChains.map(({ filterChainMatch }) => filterChainMatch?.serverNames),
    [["a.example.com"]],
  );
  assert.equal(target(made.defaultFilterChain), "tcp outbound|90||a.example.com");
});

test("without detection an undeclared port is TCP", () => {
  const features = { sniffOutbound: false };
  const { listener } = listenersOf(at("c", "10.96.0.3", { name: "auto", port: 91 }), { features });
  assert.deepEqual(targets(listener("10.96.0.3_91")), ["tcp outbound|91||c.default.svc.cluster.local"]);
});

test("what no service has goes on as it came, or nowhere", () => {
  const yaml = at("a", "10.96.0.1", { name: "http", port: 80 });
  const rest = (mode: string) => {
    const { listener } = listenersOf(yaml, { mesh: { outboundTrafficPolicy: { mode } } });
    return [target(listener("0.0.0.0_80").defaultFilterChain), target(listener("virtualOutbound").filterChains.at(-1))];
  };
  assert.deepEqual(rest("ALLOW_ANY"), ["tcp PassthroughCluster", "tcp PassthroughCluster"]);
  assert.deepEqual(rest("REGISTRY_ONLY"), ["tcp BlackHoleCluster", "tcp BlackHoleCluster"]);
});

test("hosts without an address share a listener, and are told apart by the name TLS asks for", () => {
  const tls = { ports: [{ number: 443, name: "tls", protocol: "TLS" }], resolution: "DNS" };
  const listener = listenersOf(entry("a", tls) + entry("b", tls)).listener("0.0.0.0_443");
  assert.deepEqual(targets(listener), ["tcp outbound|443||a.example.com", "tcp outbound|443||b.example.com"]);
  assert.deepEqual(
    listener.filterChains.map(({ filterChainMatch }) => filterChainMatch?.serverNames),
    [["a.example.com"], ["b.example.com"]],
  );
  assert.deepEqual(inspectors(listener), ["tls_inspector"]);
});

test("of two TCP hosts without an address on one port the older one has it", () => {
  const tcp = { ports: [{ number: 90, name: "tcp", protocol: "TCP" }], resolution: "DNS" };
  const listener = listenersOf(entry("b", tcp) + entry("a", tcp)).listener("0.0.0.0_90");
  assert.deepEqual(targets(listener), ["tcp outbound|90||a.example.com"]);
});

test("HTTP and TCP on one port of all addresses are told apart by their first bytes", () => {
  const tcp = { ports: [{ number: 80, name: "tcp", protocol: "TCP" }], resolution: "DNS" };
  const yaml = entry("b", tcp) + at("a", "10.96.0.1", { name: "http", port: 80 });
  const listener = listenersOf(yaml).listener("0.0.0.0_80");
  assert.deepEqual(targets(listener), ["http 80"]);
  assert.equal(target(listener.defaultFilterChain), "tcp outbound|80||b.example.com");
  assert.deepEqual(inspectors(listener), ["http_inspector"]);
});

test("a server that speaks first shares its port with no other protocol", () => {
  const mysql = { ports: [{ number: 80, name: "db", protocol: "MySQL" }], resolution: "DNS" };
  const yaml = entry("a", mysql) + at("z", "10.96.0.1", { name: "http", port: 80 });
  const listener = listenersOf(yaml).listener("0.0.0.0_80");
  assert.deepEqual(
    inspectors(listener).filter((name) => name === "http_inspector").length,
    targets(listener).length - 1,
  );
});

test("a headless TCP service has a listener for each of its endpoints, but not for the proxy's own", () => {
  const yaml =
    object("Service", "db", { clusterIP: "None", selector: { app: "db" }, ports: [{ name: "tcp", port: 5432 }] }) +
    workload("db-1", "10.1.0.1") +
    workload("db-2", "10.1.0.2");
  assert.deepEqual(names(yaml), ["10.1.0.1_5432", "10.1.0.2_5432"]);
  assert.deepEqual(names(yaml, { proxy: { ip: "10.1.0.2" } }), ["10.1.0.1_5432"]);
});

test("ports that one of several entries adds to a host are called at the addresses of that entry", () => {
  const tcp = (number: number, more: object = {}) =>
    object("ServiceEntry", `a-${number}`, {
      hosts: ["a.example.com"],
      ports: [{ number, name: `tcp-${number}`, protocol: "TCP" }],
      resolution: "DNS",
      ...more,
    });
  const yaml = tcp(90, { addresses: ["10.5.0.1"] }) + tcp(91, { addresses: ["10.5.0.2"] }) + tcp(92);
  assert.deepEqual(names(yaml).sort(), ["0.0.0.0_92", "10.5.0.1_90", "10.5.0.2_91"]);
});

test("ranges of a ServiceEntry are told apart on a shared listener", () => {
  const tcp = { ports: [{ number: 90, name: "tcp", protocol: "TCP" }], resolution: "NONE" };
  const yaml = entry("a", { ...tcp, addresses: ["10.0.0.0/8"] }) + entry("b", { ...tcp, addresses: ["11.0.0.0/8"] });
  const listener = listenersOf(yaml).listener("0.0.0.0_90");
  assert.deepEqual(
    listener.filterChains.map(({ filterChainMatch }) => filterChainMatch?.prefixRanges[0]?.addressPrefix),
    ["10.0.0.0", "11.0.0.0"],
  );
});

test("a TCP route of a virtual service replaces the service, and may weigh destinations", () => {
  const virtualService = object("VirtualService", "db", {
    hosts: ["db"],
    tcp: [
      {
        match: [{ port: 90 }],
        route: [
          { destination: { host: "db", subset: "v1" }, weight: 80 },
          { destination: { host: "db", subset: "v2" }, weight: 20 },
        ],
      },
    ],
  });
  const yaml = at("db", "10.96.0.1", { name: "tcp", port: 90 }, { name: "tcp-2", port: 91 }) + virtualService;
  const { listener } = listenersOf(yaml);
  assert.deepEqual(targets(listener("10.96.0.1_90")), ["tcp weightedClusters"]);
  assert.deepEqual(targets(listener("10.96.0.1_91")), ["tcp outbound|91||db.default.svc.cluster.local"]);
});

test("where nothing is captured services are on the loopback address, and there is no inbound listener", () => {
  const yaml = at("a", "10.96.0.1", { name: "http", port: 8080 }, { name: "tcp", port: 90 });
  const metadata = { INTERCEPTION_MODE: "NONE", UNPRIVILEGED_POD: "true" };
  const { listeners, listener } = listenersOf(yaml, { proxy: { metadata } });
  assert.deepEqual([...listeners.keys()], ["127.0.0.1_8080"]);
  assert.equal(listener("127.0.0.1_8080").bindToPort, undefined);
});

const WEB = service("web", { name: "http", port: 80 }, { name: "tcp", port: 90 }) + workload("web-1", "10.1.0.1");
const inbound = (yaml: string, options: Options = {}) =>
  listenersOf(yaml, { ...options, proxy: { ip: "10.1.0.1", labels: { app: "web" }, ...options.proxy } }).listener(
    "virtualInbound",
  );
/** `PORT tls`, `PORT raw_buffer`: what is taken on which port. */
const taken = ({ filterChains }: Listener, port: number | undefined) =>
  filterChains.flatMap(({ filterChainMatch: match, transportSocket }) => {
    if (match === undefined || match.destinationPort !== port) return [];
    return [`${match.transportProtocol}${transportSocket === undefined ? "" : " ends"}`];
  });

test("a port takes what the policies say", () => {
  const policy = (mode: string, more: object = {}) => object("PeerAuthentication", "p", { mtls: { mode }, ...more });
  assert.deepEqual(taken(inbound(WEB), 80), ["tls ends", "raw_buffer"]);
  assert.deepEqual(taken(inbound(WEB), 90), ["tls ends", "tls", "raw_buffer"]);
  assert.deepEqual(taken(inbound(WEB + policy("STRICT")), 80), ["tls ends"]);
  assert.deepEqual(taken(inbound(WEB + policy("DISABLE")), 80), ["raw_buffer"]);
  const portLevel = { selector: { matchLabels: { app: "web" } }, portLevelMtls: { 80: { mode: "DISABLE" } } };
  const mixed = inbound(WEB + policy("STRICT", portLevel));
  assert.deepEqual([taken(mixed, 80), taken(mixed, 90)], [["raw_buffer"], ["tls ends"]]);
});

test("a port that no service names has the workload's mode, or one of its own", () => {
  const spec = { selector: { matchLabels: { app: "web" } }, portLevelMtls: { 7777: { mode: "STRICT" } } };
  const listener = inbound(WEB + object("PeerAuthentication", "p", spec));
  assert.ok(taken(listener, 7777).every((way) => way === "tls ends"));
  assert.ok(taken(listener, undefined).includes("raw_buffer"));
});

test("connections to the inbound port itself go nowhere", () => {
  const [first] = inbound(WEB).filterChains;
  assert.equal(first?.filterChainMatch?.destinationPort, 15006);
  assert.equal(target(first), "tcp BlackHoleCluster");
});

test("ports that Envoy itself has are not the application's", () => {
  const own = service("web", { name: "http", port: 15021 }) + workload("web-1", "10.1.0.1");
  const listener = inbound(own, { proxy: { ip: "10.1.0.1", metadata: { ENVOY_STATUS_PORT: 15021 } } });
  assert.deepEqual(taken(listener, 15021), []);
});

const gateway = (...servers: object[]) => object("Gateway", "gate", { servers });
const router = { proxy: { type: "router" as const } };

test("a router listens where its Gateways say, and on nothing else", () => {
  const yaml = WEB + gateway({ port: { number: 8080, name: "http", protocol: "HTTP" }, hosts: ["*"] });
  const { listeners, listener } = listenersOf(yaml, router);
  assert.deepEqual([...listeners.keys()], ["0.0.0.0_8080"]);
  assert.deepEqual(targets(listener("0.0.0.0_8080")), ["http http.8080"]);
});

test("TLS that is passed on is told apart by the names of virtual services", () => {
  const tls = { mode: "PASSTHROUGH" };
  const yaml =
    WEB +
    gateway({ port: { number: 443, name: "tls", protocol: "TLS" }, hosts: ["*.example.com"], tls }) +
    object("VirtualService", "a", {
      hosts: ["a.example.com"],
      gateways: ["gate"],
      tls: [
        { match: [{ sniHosts: ["a.example.com"] }], route: [{ destination: { host: "web", port: { number: 90 } } }] },
      ],
    });
  const listener = listenersOf(yaml, router).listener("0.0.0.0_443");
  assert.deepEqual(targets(listener), ["tcp outbound|90||web.default.svc.cluster.local"]);
  assert.deepEqual(inspectors(listener), ["tls_inspector"]);
});

test("a TCP server without routes has no listener: it could do nothing with connections", () => {
  const yaml = gateway({ port: { number: 90, name: "tcp", protocol: "TCP" }, hosts: ["*"] });
  assert.deepEqual([...listenersOf(yaml, router).listeners.keys()], []);
});

test("where ports are opened, the first to take all connections of one keeps it", () => {
  const uncaptured = { proxy: { metadata: { INTERCEPTION_MODE: "NONE" } } };
  const http = at("a", "10.96.0.1", { name: "http", port: 90 });
  const tcp = (name: string) => at(name, "10.96.0.2", { name: "tcp", port: 90 });
  const first = listenersOf(http + tcp("b"), uncaptured).listener("127.0.0.1_90");
  assert.deepEqual([targets(first), first.defaultFilterChain], [["http 90"], undefined]);
  const second = listenersOf(at("b", "10.96.0.1", { name: "http", port: 90 }) + tcp("a"), uncaptured).listener(
    "127.0.0.1_90",
  );
  assert.deepEqual(
    [targets(second), second.defaultFilterChain],
    [["tcp outbound|90||a.default.svc.cluster.local"], undefined],
  );
});

test("a proxy with addresses of both families listens on both, where that is wanted", () => {
  const gateway = object("Gateway", "gate", {
    servers: [
      { port: { number: 80, name: "http", protocol: "HTTP" }, hosts: ["*"] },
      { port: { number: 81, name: "bound", protocol: "HTTP" }, hosts: ["*"], bind: "10.9.0.1" },
    ],
  });
  const shown = (dualStack: boolean, type: "sidecar" | "router", name: string) => {
    const proxy = { ...proxyOf({ type }), addresses: ["10.9.0.1", "fd00::1"] };
    const { additionalAddresses } = translated(meshOf(gateway, { features: { dualStack } }), proxy).listener(name);
    return additionalAddresses.map(
      ({ address }) => address?.address.case === "socketAddress" && address.address.value.address,
    );
  };
  assert.deepEqual(shown(true, "sidecar", "virtualOutbound"), ["::"]);
  assert.deepEqual(shown(true, "sidecar", "virtualInbound"), ["::"]);
  assert.deepEqual(shown(true, "router", "0.0.0.0_80"), ["::"]);
  assert.deepEqual(shown(true, "router", "10.9.0.1_81"), []);
  assert.deepEqual(shown(false, "sidecar", "virtualInbound"), []);
});

test("allocated addresses of both families are one listener", () => {
  const entry = object("ServiceEntry", "e", {
    hosts: ["a.com"],
    ports: [{ number: 9000, name: "tcp", protocol: "TCP" }],
    resolution: "DNS",
  });
  const mesh = meshOf(entry, { features: { dualStack: true } });
  const [service] = mesh.services;
  const proxy = { ...proxyOf({ metadata: { DNS_CAPTURE: "true" } }), addresses: ["10.9.0.1", "fd00::1"] };
  const { additionalAddresses } = translated(mesh, proxy).listener(`${service?.autoAddress}_9000`);
  const [other] = additionalAddresses;
  assert.equal(other?.address?.address.case, "socketAddress");
  assert.equal(other?.address?.address.value.address, service?.autoAddress6);
});

test("HTTP/3 is spoken beside HTTPS, where it is wanted and the router's service has the port for UDP", () => {
  const server = (name: string, number: number, tls: object) => ({
    port: { number, name, protocol: "HTTPS" },
    hosts: [`${name}.com`],
    tls,
  });
  const yaml =
    object("Service", "router", {
      clusterIP: "10.96.0.1",
      selector: { app: "router" },
      ports: [
        { name: "https", port: 443 },
        { name: "http3", port: 443, protocol: "UDP" },
      ],
    }) +
    workload("router-1", "10.1.0.9", { labels: { app: "router" } }) +
    object("Gateway", "gate", {
      servers: [
        server("a", 443, { mode: "MUTUAL", credentialName: "a" }),
        server("passed", 443, { mode: "PASSTHROUGH" }),
        server("c", 444, { mode: "SIMPLE", credentialName: "c" }),
      ],
    }) +
    object("VirtualService", "a", { hosts: ["a.com"], gateways: ["gate"], http: [{ redirect: { uri: "/x" } }] });
  const shown = (quicListeners: boolean) => {
    const mesh = meshOf(yaml, { features: { quicListeners } });
    const { listeners, route } = translated(mesh, proxyOf({ type: "router", ip: "10.1.0.9" }));
    const quic = [...listeners.values()].filter(({ udpListenerConfig }) => udpListenerConfig !== undefined);
    const chains = quic.flatMap(({ filterChains }) => filterChains);
    const offers = route("https.443.a.gate.default").virtualHosts.flatMap(({ routes }) => routes);
    return [
      quic.map(({ name }) => name),
      chains.map(({ filterChainMatch, transportSocket }) => [filterChainMatch?.serverNames, transportSocket?.name]),
      offers.flatMap(({ responseHeadersToAdd }) => responseHeadersToAdd.map(({ header }) => header?.value)),
    ];
  };
  assert.deepEqual(shown(false), [[], [], []]);
  assert.deepEqual(shown(true), [
    ["udp_0.0.0.0_443"],
    [[["a.com"], "envoy.transport_sockets.quic"]],
    ['h3=":443"; ma=86400'],
  ]);
});

test("a proxy with IPv6 alone takes and looks up IPv4 too where that is wanted", () => {
  const entry = object("ServiceEntry", "names", {
    hosts: ["names.example.com"],
    ports: [{ number: 80, name: "http", protocol: "HTTP" }],
    resolution: "DNS",
  });
  const proxy = proxyOf({ ip: "2001:db8::1" });
  const shown = (ipv4BesideIpv6: boolean) => {
    const ours = translated(meshOf(entry, { features: { ipv4BesideIpv6 } }), proxy);
    const [more] = ours.listener("virtualOutbound").additionalAddresses;
    const socket = more?.address?.address.case === "socketAddress" ? more.address.address.value.address : undefined;
    return [socket, ours.cluster("outbound|80||names.example.com").dnsLookupFamily];
  };
  assert.deepEqual(shown(false), [undefined, Cluster_DnsLookupFamily.V6_ONLY]);
  assert.deepEqual(shown(true), ["0.0.0.0", Cluster_DnsLookupFamily.ALL]);
});

test("a port that Envoy itself has taken has a cluster, but no chain", () => {
  const yaml =
    service("web", { name: "http", port: 80, targetPort: 15021 }, { name: "http-2", port: 81, targetPort: 8081 }) +
    workload("web-1", "10.9.0.1");
  const ours = listenersOf(yaml, { proxy: { metadata: { ENVOY_STATUS_PORT: 15021 } } });
  const ports = ours.listener("virtualInbound").filterChains.map((chain) => chain.filterChainMatch?.destinationPort);
  assert.deepEqual([ports.includes(8081), ports.includes(15021)], [true, false]);
  assert.ok(ours.clusters.has("inbound|15021||"));
});

test("statistics of a route to one destination are named by the mesh's pattern", () => {
  const ports = [{ number: 9000, name: "tcp-data", protocol: "TCP" }];
  const yaml =
    entry("data", { addresses: ["10.8.0.1"], ports, resolution: "STATIC", endpoints: [{ address: "10.1.0.1" }] }) +
    object("VirtualService", "data", {
      hosts: ["data.example.com"],
      tcp: [{ route: [{ destination: { host: "data.example.com" } }] }],
    });
  const mesh = { outboundClusterStatName: "%SERVICE%_%SERVICE_PORT_NAME%" };
  const [chain] = listenersOf(yaml, { mesh }).listener("10.8.0.1_9000").filterChains;
  const config = chain?.filters.at(-1)?.configType;
  const proxy = unpacked(TcpProxySchema, config?.case === "typedConfig" ? config.value : undefined);
  assert.equal(proxy.statPrefix, "data.example.com_tcp-data");
});

test("the rule of a host is that of its service in the whole scope, whichever namespace a listener of the Sidecar takes it from", () => {
  const declared = (namespace: string, address: string) =>
    object("ServiceEntry", `${namespace}/x`, {
      hosts: ["x.example.com"],
      addresses: [address],
      ports: [{ number: 9000, name: "tcp", protocol: "TCP" }],
      resolution: "STATIC",
      endpoints: [{ address: "192.0.2.1" }],
    }) +
    object("DestinationRule", `${namespace}/x`, {
      host: "x.example.com",
      trafficPolicy: { tunnel: { targetHost: `${namespace}.proxy`, targetPort: 3128 } },
    });
  const egress = [
    { port: { number: 9000, name: "own", protocol: "TCP" }, bind: "127.0.0.9", hosts: ["one/*"] },
    { hosts: ["two/*"] },
  ];
  const yaml = declared("one", "10.1.0.1") + declared("two", "10.1.0.2") + object("Sidecar", "default", { egress });
  const [chain] = listenersOf(yaml).listener("10.1.0.2_9000").filterChains;
  const config = chain?.filters.at(-1)?.configType;
  const { tunnelingConfig } = unpacked(TcpProxySchema, config?.case === "typedConfig" ? config.value : undefined);
  assert.equal(tunnelingConfig?.hostname, "one.proxy:3128");
});
