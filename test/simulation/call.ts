/**
 * A call through Envoy's resources without Envoy: which listener takes the connection, which of its chains, and for HTTP
 * which virtual host and route, by the rules that Envoy documents. Of a route only the path is looked at.
 */
import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import ipaddr from "ipaddr.js";
import { isSubsetOf } from "#config/terms/host.ts";
import type { FilterChain } from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import type { Listener } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { VirtualHost_TlsRequirementType as TlsRequirement } from "#gen/envoy/config/route/v3/route_components_pb.ts";
import type { RouteConfiguration } from "#gen/envoy/config/route/v3/route_pb.ts";
import { HttpConnectionManagerSchema } from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import { TcpProxySchema } from "#gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.ts";
import { DownstreamTlsContextSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts";
import { matchingRoute, matchingVirtualHost } from "./http-match.ts";
import { runsOnPort } from "./listener-filter.ts";

/** What a client does. */
export interface Call {
  readonly address: string;
  readonly port: number;
  readonly protocol: "http" | "http2" | "tcp";
  readonly tls: "plaintext" | "tls" | "mtls";
  /** Of the handshake; unset is what a client of that protocol sends. */
  readonly alpn?: string;
  readonly sni: string;
  readonly host: string;
  readonly path: string;
  /** Redirected to the listener of all incoming connections. */
  readonly isInbound: boolean;
  /** The certificate by whose name the mesh's own TLS is known. */
  readonly meshCertificate: string;
}

/** What takes the call, as far as it gets. */
export interface CallResult {
  readonly error?: string;
  readonly listenerMatched?: string;
  readonly filterChainMatched?: string;
  readonly routeConfigMatched?: string;
  readonly virtualHostMatched?: string;
  readonly routeMatched?: string;
  readonly clusterMatched?: string;
}

/** The resources of one proxy. */
export interface CalledResources {
  readonly listeners: readonly Listener[];
  readonly routes: ReadonlyMap<string, RouteConfiguration>;
}

const TLS_INSPECTOR = "envoy.filters.listener.tls_inspector";
const HTTP_INSPECTOR = "envoy.filters.listener.http_inspector";
const TCP_PROXY = "envoy.filters.network.tcp_proxy";
const HTTP_MANAGER = "envoy.filters.network.http_connection_manager";

/** Follows the call. */
export function simulate(resources: CalledResources, call: Call): CallResult {
  const listener = matchingListener(resources.listeners, call);
  if (listener === undefined) return { error: "no listener matched" };
  const found: CallResult = { listenerMatched: listener.name };
  const chain = matchingChain(listener, call);
  if (chain === "none" || chain === "several") {
    return { ...found, error: chain === "none" ? "no filter chains matched" : "multiple filter chains matched" };
  }
  const inChain = { ...found, ...(chain.name !== "" && { filterChainMatched: chain.name }) };
  const problem = tlsProblem(chain, call);
  return problem === undefined ? { ...inChain, ...answer(resources, chain, call) } : { ...inChain, error: problem };
}

/** That of the address and port, that of all addresses, or the one for what is left. */
function matchingListener(listeners: readonly Listener[], call: Call): Listener | undefined {
  if (call.isInbound) return listeners.find(({ name }) => name === "virtualInbound");
  const at = (wanted: string) =>
    listeners.find(({ address }) => {
      const socket = address?.address.case === "socketAddress" ? address.address.value : undefined;
      return socket?.address === wanted && socket.portSpecifier.value === call.port;
    });
  return at(call.address) ?? at("0.0.0.0") ?? listeners.find(({ name }) => name === "virtualOutbound");
}

type Criterion = (chain: FilterChain) => { readonly isSet: boolean; readonly rank: number };

/** Step by step the chains that match best stay; where none matches, those that do not ask. */
function matchingChain(listener: Listener, call: Call): FilterChain | "none" | "several" {
  const seesTls = runsOnPort(listener, TLS_INSPECTOR, call.port);
  const seesHttp = runsOnPort(listener, HTTP_INSPECTOR, call.port);
  const left = criteria(call, { seesTls, seesHttp }).reduce(sieve, listener.filterChains);
  const [chain, ...more] = left;
  if (more.length > 0) return "several";
  return chain ?? listener.defaultFilterChain ?? "none";
}

function sieve(chains: readonly FilterChain[], criterion: Criterion): FilterChain[] {
  const ranked = chains.map((chain) => ({ chain, ...criterion(chain) }));
  if (!ranked.some(({ isSet }) => isSet)) return [...chains];
  const best = Math.max(...ranked.map(({ isSet, rank }) => (isSet ? rank : 0)));
  const staying =
    best > 0 ? ranked.filter(({ isSet, rank }) => isSet && rank === best) : ranked.filter((one) => !one.isSet);
  return staying.map(({ chain }) => chain);
}

interface Inspected {
  readonly seesTls: boolean;
  readonly seesHttp: boolean;
}

function criteria(call: Call, inspected: Inspected): readonly Criterion[] {
  const transport = inspected.seesTls && call.tls !== "plaintext" ? "tls" : "raw_buffer";
  const application = applicationProtocol(call, inspected);
  return [
    ({ filterChainMatch: match }) => ({
      isSet: match?.destinationPort !== undefined,
      rank: match?.destinationPort === call.port ? 1 : 0,
    }),
    ({ filterChainMatch: match }) => {
      const bits = (match?.prefixRanges ?? []).map(({ addressPrefix, prefixLen = 0 }) =>
        holds(`${addressPrefix}/${prefixLen}`, call.address) ? prefixLen : 0,
      );
      return { isSet: bits.length > 0, rank: Math.max(0, ...bits) };
    },
    ({ filterChainMatch: match }) => {
      const ranks = (match?.serverNames ?? []).map((name) => nameRank(name, call.sni));
      return { isSet: ranks.length > 0, rank: Math.max(0, ...ranks) };
    },
    ({ filterChainMatch: match }) => {
      const wanted = match?.transportProtocol ?? "";
      return { isSet: wanted !== "", rank: wanted === transport ? 1 : 0 };
    },
    ({ filterChainMatch: match }) => {
      const wanted = match?.applicationProtocols ?? [];
      return { isSet: wanted.length > 0, rank: wanted.includes(application) ? 1 : 0 };
    },
  ];
}

function holds(range: string, address: string): boolean {
  const parsed = ipaddr.parse(address);
  const [first, bits] = ipaddr.parseCIDR(range);
  return parsed.kind() === first.kind() && parsed.match(first, bits);
}

function nameRank(name: string, sni: string): number {
  if (name === sni) return Number.POSITIVE_INFINITY;
  return isSubsetOf(sni, name) ? name.length : 0;
}

const PLAIN = { http: "http/1.1", http2: "h2c", tcp: "" } as const;
const OVER_TLS = { http: "http/1.1", http2: "h2", tcp: "" } as const;
const OVER_MTLS = { http: "istio-http/1.1", http2: "istio-h2", tcp: "istio" } as const;

/** What the inspectors find out; without them it is not known. */
function applicationProtocol({ tls, alpn, protocol }: Call, { seesTls, seesHttp }: Inspected): string {
  if (tls === "plaintext") return seesHttp ? PLAIN[protocol] : "";
  if (!seesTls) return "";
  return alpn ?? (tls === "mtls" ? OVER_MTLS : OVER_TLS)[protocol];
}

function tlsProblem(chain: FilterChain, call: Call): string | undefined {
  if (chain.transportSocket === undefined) return undefined;
  if (call.tls === "plaintext") return "invalid TLS";
  return demandsMeshTls(chain, call.meshCertificate) === (call.tls === "mtls") ? undefined : "invalid mTLS";
}

function demandsMeshTls({ transportSocket }: FilterChain, certificate: string): boolean {
  const config = transportSocket?.configType.case === "typedConfig" ? transportSocket.configType.value : undefined;
  if (config === undefined || !config.typeUrl.endsWith(DownstreamTlsContextSchema.typeName)) return false;
  const { commonTlsContext, requireClientCertificate } = fromBinary(DownstreamTlsContextSchema, config.value);
  return commonTlsContext?.tlsCertificateSdsSecretConfigs[0]?.name === certificate && requireClientCertificate === true;
}

function answer({ routes }: CalledResources, chain: FilterChain, call: Call): CallResult {
  const manager = filterOf(chain, HTTP_MANAGER, HttpConnectionManagerSchema);
  if (manager === undefined) {
    const target = filterOf(chain, TCP_PROXY, TcpProxySchema)?.clusterSpecifier;
    return target?.case === "cluster" ? { clusterMatched: target.value } : {};
  }
  const isOpened = call.tls === "plaintext" || chain.transportSocket !== undefined;
  if (!isOpened || call.protocol === "tcp") return { error: "protocol error" };
  const { routeSpecifier } = manager;
  if (routeSpecifier.case === "routeConfig") return routed(routeSpecifier.value, call);
  const name = routeSpecifier.case === "rds" ? routeSpecifier.value.routeConfigName : "";
  return { routeConfigMatched: name, ...routed(routes.get(name), call) };
}

function routed(config: RouteConfiguration | undefined, call: Call): CallResult {
  const host = config && matchingVirtualHost(config, call.host);
  if (host === undefined) return { error: "no virtual host matched" };
  const found = { virtualHostMatched: host.name };
  if (host.requireTls === TlsRequirement.ALL && call.tls === "plaintext") {
    return { ...found, error: "tls required, sending 301" };
  }
  const route = matchingRoute(host, call.path);
  if (route === undefined) return { ...found, error: "no route matched" };
  const target = route.action.case === "route" ? route.action.value.clusterSpecifier : undefined;
  return {
    ...found,
    ...(route.name !== "" && { routeMatched: route.name }),
    ...(target?.case === "cluster" && { clusterMatched: target.value }),
  };
}

function filterOf<Desc extends DescMessage>(
  chain: FilterChain,
  name: string,
  schema: Desc,
): MessageShape<Desc> | undefined {
  const config = chain.filters.find((filter) => filter.name === name)?.configType;
  return config?.case === "typedConfig" ? fromBinary(schema, config.value.value) : undefined;
}
