/** The listener for all captured incoming connections, and its chains. */
import { create } from "@bufbuild/protobuf";
import type { ServerTls } from "#config/kinds/gateway/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import { TrafficDirection } from "#gen/envoy/config/core/v3/base_pb.ts";
import {
  type Filter,
  FilterChainSchema,
  type ListenerFilter,
  type ListenerFilterChainMatchPredicateSchema,
  ListenerFilterSchema,
} from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import { ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import type { RouteConfigurationSchema } from "#gen/envoy/config/route/v3/route_pb.ts";
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
import { blackHole, peerExchange, tcpProxy } from "../filters/tcp-proxy.ts";
import type { InboundMatch } from "../inbound/inbound-match.ts";
import {
  hostInUrl,
  INBOUND_PASSTHROUGH_CLUSTER,
  inboundCluster,
  listenerName,
  statPrefix,
  traceOperation,
  VIRTUAL_INBOUND,
  VIRTUAL_INBOUND_BLACK_HOLE,
  VIRTUAL_INBOUND_CATCH_ALL_HTTP,
} from "../names/names.ts";
import { mutualTls } from "../tls/downstream-tls.ts";
import { serverTls } from "../tls/server-tls.ts";
import { acceptedAtOnce, additionalAddresses, EXACT_BALANCE, socketAddress } from "../traits/address.ts";
import type { HttpTraits, Interception, ServerSecrets, TcpTraits } from "../traits/traits.ts";
import { bytesOf, duration, type Init } from "../wire/encode.ts";
import { HTTP_INSPECTOR, ORIGINAL_DESTINATION, ORIGINAL_SOURCE, TLS_INSPECTOR } from "./inspectors.ts";

/** The listener without its chains, which are parts of it. */
export interface InboundListenerInput {
  readonly name: string;
  readonly address: string;
  /** Those of the other family, where both are used. */
  readonly moreAddresses: readonly string[];
  readonly port: number;
  /** How connections get to it; NONE for a port that clients connect to themselves. */
  readonly interception: Interception;
  readonly exactBalance: boolean;
  /** Where the TLS inspector has no work, or the only ports where it has; undefined where it is not needed at all. */
  readonly tlsInspector: "nowhere" | "except" | "only";
  readonly tlsPorts: readonly number[];
  readonly httpInspector: "nowhere" | "except";
  readonly httpPorts: readonly number[];
  readonly traits: TcpTraits;
  readonly mesh: MeshConfig;
}

/** Canonical bytes of the listener without its chains. */
export function inboundListener(input: InboundListenerInput): Uint8Array {
  const { name, address, moreAddresses, port, mesh } = input;
  return bytesOf(ListenerSchema, {
    name,
    address: socketAddress(address, port),
    additionalAddresses: additionalAddresses(moreAddresses, port),
    listenerFilters: listenerFilters(input),
    listenerFiltersTimeout: duration(mesh.protocolDetectionTimeout),
    trafficDirection: TrafficDirection.INBOUND,
    continueOnListenerFiltersTimeout: true,
    ...(input.interception === "TPROXY" && { transparent: true }),
    ...(input.exactBalance && { connectionBalanceConfig: EXACT_BALANCE }),
    accessLog: listenerAccessLogs(mesh),
    ...acceptedAtOnce(input.traits),
  });
}

function listenerFilters(input: InboundListenerInput): ListenerFilter[] {
  const { tlsInspector, tlsPorts, httpInspector, httpPorts } = input;
  return [
    ...(input.interception === "NONE" ? [] : [ORIGINAL_DESTINATION]),
    ...(input.interception === "TPROXY" ? [ORIGINAL_SOURCE] : []),
    ...(tlsInspector === "nowhere" ? [] : [disabledOn(TLS_INSPECTOR, tlsInspector, tlsPorts)]),
    ...(httpInspector === "nowhere" ? [] : [disabledOn(HTTP_INSPECTOR, httpInspector, httpPorts)]),
  ];
}

type Predicate = Init<typeof ListenerFilterChainMatchPredicateSchema>;

function disabledOn(filter: ListenerFilter, where: "except" | "only", ports: readonly number[]): ListenerFilter {
  const rules = ports.map(
    (port): Predicate => ({ rule: { case: "destinationPortRange", value: { start: port, end: port + 1 } } }),
  );
  const [first] = rules;
  if (first === undefined) return filter;
  const anyOf: Predicate = rules.length === 1 ? first : { rule: { case: "orMatch", value: { rules } } };
  const filterDisabled: Predicate = where === "except" ? anyOf : { rule: { case: "notMatch", value: anyOf } };
  return create(ListenerFilterSchema, { name: filter.name, configType: filter.configType, filterDisabled });
}

/** What the chain that stops connections to the inbound port itself depends on. */
export interface BlackHoleChainInput {
  readonly traits: TcpTraits;
  readonly mesh: MeshConfig;
}

/** A connection to the port itself was not captured: passing it on would bring it back here for ever. */
export function inboundBlackHoleChain({ traits, mesh }: BlackHoleChainInput): Uint8Array {
  return bytesOf(FilterChainSchema, {
    name: VIRTUAL_INBOUND_BLACK_HOLE,
    filterChainMatch: { destinationPort: mesh.proxyInboundListenPort },
    filters: [...peerExchange(traits), blackHole()],
  });
}

/** One chain for one way connections to a port may look. */
export interface InboundChainInput extends AuthorizationInput, JwtInput {
  /** Of no service: goes to whatever port was called. */
  readonly passthrough: boolean;
  /** The port the application listens on; 0 for all that no other chain names. */
  readonly targetPort: number;
  /** The service that is called, for traces; empty without one. */
  readonly hostname: string;
  readonly servicePort: number;
  readonly protocol: Protocol;
  readonly match: InboundMatch;
  /** Statistics of TCP connections are kept under this. */
  readonly tcpStatPrefix: string;
  /** The address that it is called on. */
  readonly bind: string;
  /** TLS of the user's own, in place of the mesh's. */
  readonly tls: ServerTls | undefined;
  /** In place of the mesh's certificate and roots. */
  readonly serverSecrets: ServerSecrets;
  /** `NAME CLUSTER` of each service of the mesh that serves credentials. */
  readonly credentialProviders: readonly string[];
  /** The path of the Sidecar it comes from; empty for services. */
  readonly origin: string;
  readonly traits: HttpTraits;
  readonly mesh: MeshConfig;
}

/** Canonical bytes of a chain. */
export function inboundChain(input: InboundChainInput): Uint8Array {
  const { match, targetPort, traits, mesh, tls, origin, serverSecrets: secrets, credentialProviders } = input;
  const isHttp = match.treatedAs === "http";
  return bytesOf(FilterChainSchema, {
    name: chainName(input),
    filterChainMatch: {
      transportProtocol: match.transportProtocol,
      applicationProtocols: [...match.applicationProtocols],
      ...(targetPort > 0 && { destinationPort: targetPort }),
    },
    filters: [...peerExchange(traits), ...(isHttp ? [httpFilter(input)] : tcpFilters(input))],
    ...(match.endsTls && {
      transportSocket:
        tls === undefined
          ? mutualTls({ alpnProtocols: offeredProtocols(isHttp, traits), mesh, secrets, traits })
          : serverTls({ tls, isTcp: false, traits, secrets, credentialProviders, mesh }),
    }),
    ...(origin !== "" && { metadata: { filterMetadata: { istio: { config: origin } } } }),
  });
}

/** The application's protocols; over TCP also the one by which proxies tell each other who they are. */
function offeredProtocols(isHttp: boolean, traits: TcpTraits): readonly string[] {
  const protocols = ["h2", "http/1.1"];
  const exchanges = traits.metadataExchange && !traits.withoutExchangeAlpn && !isHttp;
  return exchanges ? ["istio-peer-exchange", ...protocols] : protocols;
}

function chainName({ passthrough, match, targetPort, bind }: InboundChainInput): string {
  if (!passthrough) return listenerName(bind, targetPort);
  return match.treatedAs === "http" ? VIRTUAL_INBOUND_CATCH_ALL_HTTP : VIRTUAL_INBOUND;
}

function clusterOf({ passthrough, targetPort }: InboundChainInput): string {
  return passthrough ? INBOUND_PASSTHROUGH_CLUSTER : inboundCluster(targetPort);
}

function tcpFilters(input: InboundChainInput): Filter[] {
  const target = { clusters: [clusterOf(input)], weights: [], subset: "", rule: undefined, protocol: input.protocol };
  return [
    ...unreadableTcpFilters(input),
    ...customTcpFilters(input),
    ...tcpAuthorization(input),
    ...tcpProxy({ ...target, statPrefix: input.tcpStatPrefix }, input.traits, input.mesh),
  ];
}

function httpFilter(input: InboundChainInput): Filter {
  const name = input.passthrough ? INBOUND_PASSTHROUGH_CLUSTER : `inbound_${chainName(input)}`;
  return httpConnectionManager({
    class: "inbound",
    statPrefix: statPrefix(name),
    routes: inboundRoutes(input),
    protocol: input.protocol,
    traits: input.traits,
    mesh: input.mesh,
    authorization: input,
    authentication: input,
  });
}

/** All requests go to the application; how long they may take is the client's business. */
function inboundRoutes(input: InboundChainInput): Init<typeof RouteConfigurationSchema> {
  const { hostname, servicePort, protocol } = input;
  const cluster = clusterOf(input);
  const isGrpc = protocol === "GRPC" || protocol === "GRPC-Web";
  const never = duration(0);
  // The application may close an idle connection just when a request is sent; retrying streams of gRPC does not work.
  const retryPolicy = { retryOn: "reset-before-request", numRetries: 2 };
  return {
    name: cluster,
    validateClusters: false,
    virtualHosts: [
      {
        name: `inbound|http|${servicePort}`,
        domains: ["*"],
        routes: [
          {
            name: "default",
            match: { pathSpecifier: { case: "prefix", value: "/" } },
            decorator: { operation: traceOperation(hostInUrl(hostname), servicePort) },
            action: {
              case: "route",
              value: {
                clusterSpecifier: { case: "cluster", value: cluster },
                timeout: never,
                maxStreamDuration: { maxStreamDuration: never, grpcTimeoutHeaderMax: never },
                ...(!isGrpc && { retryPolicy }),
              },
            },
          },
        ],
      },
    ],
  };
}
