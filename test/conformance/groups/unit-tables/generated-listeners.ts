/** Tables about listeners: gateways, chains and filters, TCP targets, tracing, headers. */
import type { FilterChain } from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import type { Listener } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import {
  type HttpConnectionManager_Tracing,
  HttpConnectionManager_TracingSchema,
  HttpConnectionManagerSchema,
} from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import { type TcpProxy, TcpProxySchema } from "#gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.ts";
import { DownstreamTlsContextSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts";
import { compareJson, firstOf } from "../../compare.ts";
import type { Outcome } from "../../harness.ts";
import type { KubernetesObject } from "../../kubernetes-mesh.ts";
import type { NodeDump } from "../../recorded.ts";
import type { ServiceDump } from "../../recorded-mesh.ts";
import { byRow, leftOut, type RowCheck } from "../../unit-tables.ts";
import { narrowed, networking, opened, settingsOf, shown, tableResources, written } from "./table-mesh.ts";

const ROUTER_IP = "1.1.1.1";

/** What of a node's dump has a counterpart in metadata. */
interface GatewayNode {
  readonly Metadata?: { readonly HTTP10?: string; readonly UnprivilegedPod?: string };
  readonly ServiceTargets?: readonly {
    readonly Port: { readonly Port: number; readonly TargetPort: number };
    readonly Service: { readonly Hostname: string };
  }[];
}

const gatewayListeners: RowCheck = byRow<{
  gateways: readonly KubernetesObject[];
  virtualServices?: readonly KubernetesObject[];
  node: GatewayNode;
  expectedListeners: readonly string[];
}>(({ gateways, virtualServices = [], node, expectedListeners }) => {
  const { Metadata = {}, ServiceTargets = [] } = node;
  const services = ServiceTargets.map(({ Port, Service }) => gatewayService(Service.Hostname, Port.Port));
  const instances = ServiceTargets.map(({ Port, Service }) => ({
    Service: gatewayService(Service.Hostname, Port.Port),
    Endpoint: { Addresses: [ROUTER_IP], EndpointPort: Port.TargetPort, ServicePortName: "port" },
  }));
  const configs = [...gateways, ...virtualServices].map(withHosts);
  const metadata = { UNPRIVILEGED_POD: Metadata.UnprivilegedPod ?? "" };
  const ours = tableResources({ configs, services, instances }, { type: "router", metadata });
  return compareJson([...ours.listeners.keys()].sort(), [...expectedListeners].sort());
});

/** Some servers of the data say for no host, which no user may write. */
function withHosts(config: KubernetesObject): KubernetesObject {
  const { spec } = config as KubernetesObject & { readonly spec: { readonly servers?: readonly object[] } };
  if (config.kind !== "Gateway") return config;
  const servers = (spec.servers ?? []).map((server) => ({ hosts: ["*"], ...server }));
  return { ...config, spec: { ...spec, servers } } as KubernetesObject;
}

function gatewayService(Hostname: string, Port: number): ServiceDump {
  const Attributes = { Name: "gateway", Namespace: "default", ServiceRegistry: "Kubernetes" };
  return { Hostname, Ports: [{ Name: "port", Port, Protocol: "TCP" }], DefaultAddress: "10.96.0.1", Attributes };
}

interface WantedListener {
  readonly Filters?: readonly string[];
  readonly TotalMatch?: boolean;
  readonly FilterChains: readonly {
    readonly NetworkFilters?: readonly string[];
    readonly HTTPFilters?: readonly string[];
    readonly TotalMatch?: boolean;
  }[];
}

const gatewayFilters: RowCheck = byRow<{
  configs: readonly KubernetesObject[];
  proxyConfig?: object;
  expectedListener: WantedListener;
}>(({ configs, proxyConfig, expectedListener }) => {
  const absent = configs.find(({ kind }) => kind === "Telemetry" || kind === "WasmPlugin");
  if (absent !== undefined) return { leftOut: `${absent.kind} has no effect yet` };
  const metadata = proxyConfig === undefined ? {} : { PROXY_CONFIG: proxyConfig };
  const ours = tableResources({ configs: configs.map(withHosts) }, { type: "router", metadata });
  const [listener] = ours.listeners.values();
  const filters = listener?.listenerFilters.map(({ name }) => name);
  const chains = listener === undefined ? [] : listener.filterChains.map(filtersOf);
  const like = expectedListener.FilterChains.map(({ NetworkFilters = [], HTTPFilters = [] }) => ({
    NetworkFilters,
    HTTPFilters,
  }));
  const wanted = expectedListener.Filters ?? [];
  return firstOf([
    compareJson(
      filters?.filter((name) => wanted.includes(name)),
      wanted,
    ),
    compareJson(chains, like),
  ]);
});

function filtersOf({ filters }: FilterChain): object {
  const manager = settingsOf(HttpConnectionManagerSchema, filters);
  return {
    NetworkFilters: filters.map(({ name }) => name),
    HTTPFilters: manager?.httpFilters.map(({ name }) => name) ?? [],
  };
}

const chainOptions: RowCheck = byRow<{
  server: { readonly name?: string; readonly hosts?: readonly string[]; readonly port: object; readonly tls?: object };
  node: GatewayNode;
  proxyConfig?: object;
  transportProtocol: number;
  result: {
    readonly sniHosts?: readonly string[];
    readonly tlsContext?: object;
    readonly httpOpts: {
      readonly connectionManager: object;
      readonly statPrefix?: string;
      readonly useRemoteAddress: boolean;
    };
  };
}>(({ server, node, proxyConfig, transportProtocol, result }) => {
  if (transportProtocol !== 0) return { leftOut: "PILOT_ENABLE_QUIC_LISTENERS is compared as whole listeners" };
  const metadata = { HTTP10: node.Metadata?.HTTP10 ?? "", ...(proxyConfig && { PROXY_CONFIG: proxyConfig }) };
  const full = { hosts: ["*"], ...server, port: { number: 443, name: "port", ...server.port } };
  const configs = [networking("Gateway", { servers: [full] })];
  const ours = tableResources({ configs }, { type: "router", metadata }).listener("0.0.0.0_443");
  const [chain] = ours.filterChains;
  const manager = chain && settingsOf(HttpConnectionManagerSchema, chain.filters);
  const { connectionManager: wanted, useRemoteAddress } = result.httpOpts;
  const like = { ...wanted, useRemoteAddress };
  const socket = chain?.transportSocket?.configType;
  const context = socket?.case === "typedConfig" ? opened(DownstreamTlsContextSchema, socket.value) : undefined;
  const { commonTlsContext, ...rest } = (result.tlsContext ?? {}) as Record<string, object>;
  const tls = commonTlsContext && { commonTlsContext, ...rest };
  return firstOf([
    compareJson(
      narrowed(shown(HttpConnectionManagerSchema, manager), like),
      narrowed(written(HttpConnectionManagerSchema, like), like),
    ),
    compareJson(chain?.filterChainMatch?.serverNames ?? [], result.sniHosts ?? []),
    compareJson(narrowed(shown(DownstreamTlsContextSchema, context), tls), written(DownstreamTlsContextSchema, tls)),
  ]);
});

const TCP_HOST = "test.example.com";

interface Route {
  readonly destination: { readonly host: string; readonly port: { readonly number: number }; readonly subset?: string };
  readonly weight?: number;
}

interface TcpRow {
  readonly routes: readonly Route[];
  readonly rules?: readonly object[];
  readonly mesh?: object;
  readonly metadata?: NodeDump["metadata"];
  /** Metadata of the virtual service, where there are several routes. */
  readonly origin?: object;
}

/** What sends connections to a TCP service on, when its virtual service has those routes. */
function tcpTarget({ routes, rules = [], mesh, metadata = {}, origin = {} }: TcpRow): TcpProxy | undefined {
  const hosts = new Map(routes.map(({ destination }) => [destination.host, destination.port.number]));
  const Attributes = { Namespace: "default", ServiceRegistry: "External" };
  const ports = [...new Set(routes.map(({ destination }) => destination.port.number))];
  const services = [...hosts].map(([Hostname], i) => ({
    ...{ Hostname, DefaultAddress: `10.96.0.${i + 1}`, Attributes },
    Ports: ports.map((Port) => ({ Name: `tcp-${Port}`, Port, Protocol: "TCP" })),
  }));
  const [first] = routes;
  const { host, port } = first?.destination ?? { host: TCP_HOST, port: { number: 0 } };
  const configs = [
    networking("VirtualService", { hosts: [host], tcp: [{ match: [{ port: port.number }], route: routes }] }, origin),
    ...rules.map((rule, i) => networking("DestinationRule", rule, { name: `rule-${i}` })),
  ];
  const ours = tableResources({ services, configs, mesh }, { metadata });
  return tcpProxyOf(ours.listener(`10.96.0.1_${port.number}`));
}

function tcpProxyOf({ filterChains, defaultFilterChain }: Listener): TcpProxy | undefined {
  const chains = [...filterChains, ...(defaultFilterChain === undefined ? [] : [defaultFilterChain])];
  return chains.map(({ filters }) => settingsOf(TcpProxySchema, filters)).find((found) => found !== undefined);
}

function idleOf(proxy: TcpProxy | undefined): string | undefined {
  return (shown(TcpProxySchema, proxy) as { readonly idleTimeout?: string } | undefined)?.idleTimeout;
}

const outboundIdle: RowCheck = byRow<{
  istioMetaIdleTimeout?: string;
  routes: readonly Route[];
  destRule?: object;
  expected?: string;
}>(({ istioMetaIdleTimeout: IDLE_TIMEOUT, routes, destRule, expected }) => {
  const rules = destRule === undefined ? [] : [destRule];
  return compareJson(idleOf(tcpTarget({ routes, rules, metadata: { IDLE_TIMEOUT } })), expected);
});

const outboundStatistics: RowCheck = byRow<{
  routes: readonly Route[];
  statPattern: string;
  expectedStatPrefix: string;
}>(({ routes, statPattern: outboundClusterStatName, expectedStatPrefix }) => {
  // In the table the virtual service has the name of its host, which statistics of several routes are named after.
  const mesh = { outboundClusterStatName };
  const ours = tcpTarget({ routes, mesh, origin: { name: routes[0]?.destination.host, namespace: "ns" } });
  return compareJson(ours?.statPrefix, expectedStatPrefix);
});

/** The rules of the test that the table was taken from; they are not in the data. */
const HASHED = { loadBalancer: { consistentHash: { useSourceIp: true } } };
const HASH_RULES = [
  { host: "test.com", trafficPolicy: HASHED },
  { host: "testsimple.com", trafficPolicy: { loadBalancer: { simple: "ROUND_ROBIN" } } },
  { host: "subsettest.com", trafficPolicy: HASHED, subsets: [{ name: "v1", labels: { version: "v1" } }] },
];

const sourceHash: RowCheck = byRow<{ routes: readonly Route[]; useSourceIP: boolean }>(({ routes, useSourceIP }) => {
  const ours = tcpTarget({ routes, rules: HASH_RULES });
  return compareJson(
    ours?.hashPolicy.some(({ policySpecifier }) => policySpecifier.case === "sourceIp"),
    useSourceIP,
  );
});

/** The chain of a TCP port of the workload itself. */
function inboundTarget(mesh: object, metadata: NodeDump["metadata"]): TcpProxy | undefined {
  const service: ServiceDump = {
    Hostname: "v0.default.example.org",
    DefaultAddress: "9.9.9.9",
    Ports: [{ Name: "tcp", Port: 80, Protocol: "TCP" }],
    Attributes: { Namespace: "not-default", ServiceRegistry: "External" },
  };
  const Endpoint = { Addresses: ["1.1.1.1"], EndpointPort: 8888, ServicePortName: "tcp" };
  const instances = [{ Service: service, Endpoint }];
  const node = { configNamespace: "not-default", metadata };
  const { filterChains } = tableResources({ services: [service], instances, mesh }, node).listener("virtualInbound");
  const chain = filterChains.find(({ filterChainMatch }) => filterChainMatch?.destinationPort === 8888);
  return chain && settingsOf(TcpProxySchema, chain.filters);
}

/** Whether a condition on callers lets a proxy of the namespace take the route. */
function callerMatch(kind: "tcp" | "tls"): RowCheck {
  return byRow<{ args: { match: object; namespace?: string }; want: boolean }>(({ args, want }) => {
    const { match, namespace: configNamespace = "" } = args;
    const condition = kind === "tls" ? { ...match, sniHosts: [TCP_HOST] } : match;
    const destination = { host: "other.example.com", port: { number: 443 } };
    const spec = { hosts: [TCP_HOST], [kind]: [{ match: [condition], route: [{ destination }] }] };
    const services = [TCP_HOST, destination.host].map((Hostname, i) => ({
      ...{ Hostname, DefaultAddress: `10.96.0.${i + 1}` },
      Ports: [{ Name: kind, Port: 443, Protocol: kind.toUpperCase() }],
      Attributes: { Namespace: "default", ServiceRegistry: "External" },
    }));
    const configs = [networking("VirtualService", spec)];
    const node = { configNamespace, metadata: { NAMESPACE: configNamespace } };
    const proxy = tcpProxyOf(tableResources({ services, configs }, node).listener("10.96.0.1_443"));
    return compareJson(proxy?.clusterSpecifier.value === `outbound|443||${destination.host}`, want);
  });
}

/** The connection manager for outgoing HTTP of a proxy with those settings. */
function managerOf(proxyConfig: object, options: { mesh?: object; traceSampling?: number; router?: boolean } = {}) {
  const { mesh = {}, traceSampling = 1, router = false } = options;
  const Attributes = { Namespace: "default", ServiceRegistry: "Kubernetes" };
  const Ports = [{ Name: "http", Port: 80, Protocol: "HTTP" }];
  const services = [{ Hostname: "a.example.com", DefaultAddress: "10.96.0.1", Ports, Attributes }];
  const port = { number: 80, name: "http", protocol: "HTTP" };
  const configs = router ? [networking("Gateway", { servers: [{ hosts: ["*"], port }] })] : [];
  const ours = tableResources(
    { services, configs, mesh, features: { traceSampling } },
    { type: router ? "router" : "sidecar", metadata: { PROXY_CONFIG: proxyConfig } },
  );
  const [chain] = ours.listener("0.0.0.0_80").filterChains;
  return { manager: chain && settingsOf(HttpConnectionManagerSchema, chain.filters), ours };
}

const tracing: RowCheck = byRow<{ name: string; in: object; out: object; envPilotSampling: number }>((row) => {
  // The variable is not set where the table says 0.
  const traceSampling = row.envPilotSampling || 1;
  const options = { mesh: { enableTracing: true }, traceSampling };
  return compareTracing(managerOf({ tracing: row.in }, options).manager?.tracing, row.out);
});

function compareTracing(tracing: HttpConnectionManager_Tracing | undefined, want: object | undefined): Outcome {
  const ours = shown(HttpConnectionManager_TracingSchema, tracing) as Tracing | undefined;
  const wanted = written(HttpConnectionManager_TracingSchema, want) as Tracing | undefined;
  // Tags of the workload depend on the proxy of the test, which is not in the data.
  const own = (found: Tracing | undefined) =>
    found && { ...found, customTags: found.customTags.filter(({ tag }) => !WORKLOAD_TAG.test(tag)) };
  return compareJson(own(ours), own(wanted));
}

const ownTracing: RowCheck = byRow<{
  inSpec?: object;
  opts: {
    proxy: { readonly Type?: string; readonly Metadata: { readonly ProxyConfig: object } };
    push: { readonly Mesh: object };
  };
  want?: object;
}>(({ inSpec, opts: { proxy, push }, want }) => {
  if (inSpec !== undefined) return { leftOut: BY_TELEMETRY };
  if (proxy.Type === "waypoint") return { leftOut: "waypoints come with ambient" };
  return compareTracing(managerOf(proxy.Metadata.ProxyConfig, { mesh: push.Mesh }).manager?.tracing, want);
});

const WORKLOAD_TAG = /^istio\.(canonical|mesh_id|namespace|cluster_id)/;

interface Tracing {
  readonly customTags: readonly { readonly tag: string }[];
}

/** The number of the class of listeners that lead outwards. */
const OUTBOUND = 2;

const proxyHeaders: RowCheck = byRow<{
  config?: object;
  class: number;
  expected: {
    readonly ServerName?: string;
    readonly GenerateRequestID?: boolean;
    readonly IncludeRequestAttemptCount?: boolean;
    readonly XForwardedHost?: boolean;
    readonly XForwardedPort?: boolean;
    readonly SuppressDebugHeaders?: boolean;
  };
}>(({ config = {}, class: listenerClass, expected }) => {
  const { ours, manager: outbound } = managerOf(config);
  const routes = ours.route("80");
  const inbound = ours.listener("virtualInbound").filterChains.flatMap(({ filters }) => filters);
  const manager = listenerClass === OUTBOUND ? outbound : settingsOf(HttpConnectionManagerSchema, inbound);
  const unknown = routes.virtualHosts.find(({ domains }) => domains.includes("*"))?.routes[0]?.action;
  const router = manager?.httpFilters.at(-1)?.configType;
  const got = {
    ServerName: manager?.serverName || undefined,
    GenerateRequestID: manager?.generateRequestId,
    IncludeRequestAttemptCount: routes.virtualHosts[0]?.includeRequestAttemptCount || undefined,
    XForwardedHost: (unknown?.case === "route" && unknown.value.appendXForwardedHost) || undefined,
    XForwardedPort: manager?.appendXForwardedPort || undefined,
    SuppressDebugHeaders: (router?.case === "typedConfig" && router.value.value.length > 0) || undefined,
  };
  const { ServerName, GenerateRequestID, IncludeRequestAttemptCount } = expected;
  const { XForwardedHost, XForwardedPort, SuppressDebugHeaders } = expected;
  const wanted = { ServerName, GenerateRequestID, IncludeRequestAttemptCount };
  return compareJson(got, { ...wanted, XForwardedHost, XForwardedPort, SuppressDebugHeaders });
});

const tlsDefaults: RowCheck = byRow<{ tlsDefaults?: object; expected?: Readonly<Record<string, unknown>> }>((row) => {
  const port = { number: 443, name: "https", protocol: "HTTPS" };
  const tls = { mode: "SIMPLE", credentialName: "secret" };
  const configs = [networking("Gateway", { servers: [{ hosts: ["*"], port, tls }] })];
  const mesh = row.tlsDefaults === undefined ? {} : { tlsDefaults: row.tlsDefaults };
  const [chain] = tableResources({ configs, mesh }, { type: "router" }).listener("0.0.0.0_443").filterChains;
  const socket = chain?.transportSocket?.configType;
  const context = socket?.case === "typedConfig" ? opened(DownstreamTlsContextSchema, socket.value) : undefined;
  const json = shown(DownstreamTlsContextSchema, context) as { commonTlsContext: { tlsParams?: object } };
  return compareJson(json.commonTlsContext.tlsParams ?? {}, row.expected ?? {});
});

const inboundIdle: RowCheck = byRow<{ idleTimeout: string; expected?: string }>(({ idleTimeout, expected }) =>
  compareJson(idleOf(inboundTarget({}, { IDLE_TIMEOUT: idleTimeout })), expected),
);

const inboundStatistics: RowCheck = byRow<{ statPattern: string; expectedStatPrefix: string }>((row) => {
  const ours = inboundTarget({ inboundClusterStatName: row.statPattern }, {});
  return compareJson(ours?.statPrefix, row.expectedStatPrefix);
});

const BY_TELEMETRY = "tracers other than that of the bootstrap are chosen by Telemetry, which has no effect yet";

export const generatedListenerFunctions: Readonly<Record<string, RowCheck>> = {
  "BuildListeners for gateways": gatewayListeners,
  "gateway listener filters": gatewayFilters,
  createGatewayHTTPFilterChainOpts: chainOptions,
  "outbound idle timeout": outboundIdle,
  "outbound stat prefix": outboundStatistics,
  "source ip hash": sourceHash,
  "inbound idle timeout": inboundIdle,
  "inbound stat prefix": inboundStatistics,
  matchTCP: callerMatch("tcp"),
  matchTLS: callerMatch("tls"),
  "http proxy listener tracing": tracing,
  GetProxyHeadersFromProxyConfig: proxyHeaders,
  applyDownstreamTLSDefaults: tlsDefaults,
  configureTracing: ownTracing,
  zipkinConfig: leftOut(BY_TELEMETRY),
};
