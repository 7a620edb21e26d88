/** Listeners of routers, and their chains. */
import type { ServerTls } from "#config/kinds/gateway/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import { TrafficDirection } from "#gen/envoy/config/core/v3/base_pb.ts";
import { FilterChainSchema } from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import { ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import type { Protocol } from "#model/service/service.ts";
import type { JwtInput } from "../authentication/jwt-filter.ts";
import {
  type AuthorizationInput,
  customTcpFilters,
  tcpAuthorization,
  unreadableTcpFilters,
} from "../authorization/filters.ts";
import { listenerAccessLogs } from "../filters/access-log.ts";
import { httpConnectionManager } from "../filters/http-connection-manager.ts";
import { peerExchange, tcpProxy } from "../filters/tcp-proxy.ts";
import { listenerName, statPrefix, udpListenerName } from "../names/names.ts";
import { serverTls } from "../tls/server-tls.ts";
import { acceptedAtOnce, additionalAddresses, EXACT_BALANCE, socketAddress, udpAddress } from "../traits/address.ts";
import type { HttpTraits, ServerSecrets, TcpTraits } from "../traits/traits.ts";
import { bytesOf, duration, type Init } from "../wire/encode.ts";
import type { TcpChain } from "./chains.ts";
import { PROXY_PROTOCOL, TLS_INSPECTOR } from "./inspectors.ts";

/** A listener without its chains, which are parts of it. */
export interface GatewayListenerInput {
  readonly address: string;
  /** Those of the other family, where both are used. */
  readonly moreAddresses: readonly string[];
  readonly port: number;
  readonly inspectsTls: boolean;
  readonly readsProxyProtocol: boolean;
  readonly exactBalance: boolean;
  readonly traits: TcpTraits;
  readonly mesh: MeshConfig;
}

/** Canonical bytes of the listener without its chains. */
export function gatewayListener(input: GatewayListenerInput): Uint8Array {
  const { address, moreAddresses, port } = input;
  return bytesOf(ListenerSchema, {
    name: listenerName(address, port),
    address: socketAddress(address, port),
    additionalAddresses: additionalAddresses(moreAddresses, port),
    listenerFilters: [
      ...(input.readsProxyProtocol ? [PROXY_PROTOCOL] : []),
      ...(input.inspectsTls ? [TLS_INSPECTOR] : []),
    ],
    trafficDirection: TrafficDirection.OUTBOUND,
    ...(input.exactBalance && { connectionBalanceConfig: EXACT_BALANCE }),
    accessLog: listenerAccessLogs(input.mesh),
    ...acceptedAtOnce(input.traits),
  });
}

/** A listener for HTTP/3 without its chains. */
export type QuicListenerInput = Pick<GatewayListenerInput, "address" | "moreAddresses" | "port" | "traits" | "mesh">;

/** Canonical bytes of the listener for HTTP/3 without its chains. */
export function quicListener({ address, moreAddresses, port, traits, mesh }: QuicListenerInput): Uint8Array {
  return bytesOf(ListenerSchema, {
    name: udpListenerName(address, port),
    address: udpAddress(address, port),
    additionalAddresses: moreAddresses.map((more) => ({ address: udpAddress(more, port) })),
    trafficDirection: TrafficDirection.OUTBOUND,
    udpListenerConfig: { quicOptions: {}, downstreamSocketConfig: {} },
    accessLog: listenerAccessLogs(mesh),
    ...acceptedAtOnce(traits),
  });
}

/** What all chains of a gateway share. */
interface GatewayChainInput extends AuthorizationInput {
  /** Which TLS connections it takes; empty takes any. */
  readonly serverNames: readonly string[];
  /** Application protocols of the handshake that it takes; none takes any. */
  readonly applicationProtocols?: readonly string[];
  /** TLS that ends here, if any. */
  readonly tls: ServerTls | undefined;
  /** In place of the workload's certificate and roots. */
  readonly serverSecrets: ServerSecrets;
  /** `NAME CLUSTER` of each service of the mesh that serves credentials. */
  readonly credentialProviders: readonly string[];
  readonly traits: HttpTraits;
  readonly mesh: MeshConfig;
}

/** HTTP, with or without TLS. */
export interface GatewayHttpChainInput extends GatewayChainInput, JwtInput {
  readonly listener: string;
  readonly routeName: string;
  readonly protocol: Protocol;
  /** The server's name, if it has one: its statistics are kept under it. */
  readonly serverName: string;
  /** Over QUIC, as HTTP/3. */
  readonly isQuic: boolean;
}

/** Canonical bytes of a chain for HTTP. */
export function gatewayHttpChain(input: GatewayHttpChainInput): Uint8Array {
  const manager = httpConnectionManager({
    class: "gateway",
    statPrefix: input.serverName === "" ? statPrefix(`outbound_${input.listener}`) : input.serverName,
    routes: input.routeName,
    protocol: input.protocol,
    isQuic: input.isQuic,
    traits: input.traits,
    mesh: input.mesh,
    authorization: input,
    authentication: input,
  });
  return bytesOf(FilterChainSchema, {
    ...chainFields(input, { isTcp: false, isQuic: input.isQuic }),
    filters: [manager],
  });
}

/** Anything else, with TLS that ends here or is passed on. */
export interface GatewayTcpChainInput extends GatewayChainInput, TcpChain {
  /** Whether the rule's tunnel is used; unset means that it is. */
  readonly tunnels?: boolean;
}

/** Canonical bytes of a chain for TCP. */
export function gatewayTcpChain(input: GatewayTcpChainInput): Uint8Array {
  const { traits, mesh } = input;
  const proxy = tcpProxy({ ...input, rule: input.rule?.spec }, traits, mesh);
  const exchange = input.tls?.mode === "ISTIO_MUTUAL" ? peerExchange(traits) : [];
  const authorization = [...unreadableTcpFilters(input), ...customTcpFilters(input), ...tcpAuthorization(input)];
  return bytesOf(FilterChainSchema, {
    ...chainFields(input, { isTcp: true, isQuic: false }),
    filters: [...exchange, ...authorization, ...proxy],
  });
}

function chainFields(
  input: GatewayChainInput,
  over: { readonly isTcp: boolean; readonly isQuic: boolean },
): Init<typeof FilterChainSchema> {
  const {
    serverNames,
    applicationProtocols = [],
    tls,
    traits,
    serverSecrets: secrets,
    credentialProviders,
    mesh,
  } = input;
  const takesAny = serverNames.length === 0 || serverNames.includes("*");
  return {
    ...(!takesAny && {
      filterChainMatch: { serverNames: [...serverNames].sort(), applicationProtocols: [...applicationProtocols] },
    }),
    ...(tls && { transportSocket: serverTls({ tls, ...over, traits, secrets, credentialProviders, mesh }) }),
    transportSocketConnectTimeout: duration(15_000),
  };
}
