/** Filter chains of outbound listeners. */

import type { DestinationRule } from "#config/kinds/destination-rule/schema.ts";
import type { VirtualService } from "#config/kinds/virtual-service/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import {
  type FilterChainMatchSchema,
  FilterChainSchema,
} from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import type { Protocol } from "#model/service/service.ts";
import { httpConnectionManager } from "../filters/http-connection-manager.ts";
import { tcpProxy } from "../filters/tcp-proxy.ts";
import { configOrigin } from "../names/metadata.ts";
import { HTTP_PROXY_ROUTES, statPrefix } from "../names/names.ts";
import type { HttpTraits, TcpTraits } from "../traits/traits.ts";
import { cidrRange } from "../wire/cidr.ts";
import { bytesOf, duration, type Init } from "../wire/encode.ts";

/** HTTP towards services, whose routes are fetched by name. */
export interface HttpChainInput {
  readonly listener: string;
  readonly routeName: string;
  /** Taken only for what looks like HTTP, where other protocols may come to the same port. */
  readonly sniffed: boolean;
  readonly protocol: Protocol;
  readonly traits: HttpTraits;
  readonly mesh: MeshConfig;
}

/** Where connections of a chain go, and which ones it takes. */
export interface TcpChain {
  readonly clusters: readonly string[];
  readonly weights: readonly number[];
  readonly statPrefix: string;
  readonly protocol: Protocol;
  readonly subset: string;
  readonly rule: ConfigObject<DestinationRule> | undefined;
  /** The virtual service whose route this is. */
  readonly origin: ConfigObject<VirtualService> | undefined;
  /** Empty takes any. */
  readonly serverNames: readonly string[];
  /** Destination addresses; empty takes any. */
  readonly ranges: readonly string[];
}

/** A chain with what it depends on of proxy and mesh. */
export interface TcpChainInput extends TcpChain {
  readonly traits: TcpTraits;
  readonly mesh: MeshConfig;
}

/** Ends handshakes that take too long: slow ones hold memory. */
const HANDSHAKE_TIMEOUT = duration(15_000);

/** Canonical bytes of a chain for HTTP. */
export function httpChain(input: HttpChainInput): Uint8Array {
  const manager = httpConnectionManager({
    class: "outbound",
    statPrefix: statPrefix(`outbound_${input.listener}`),
    routes: input.routeName,
    takesAbsoluteUrls: input.routeName === HTTP_PROXY_ROUTES,
    protocol: input.protocol,
    traits: input.traits,
    mesh: input.mesh,
  });
  return bytesOf(FilterChainSchema, {
    ...(input.sniffed && { filterChainMatch: detectedHttp(input.traits) }),
    filters: [manager],
    transportSocketConnectTimeout: HANDSHAKE_TIMEOUT,
  });
}

/** Plain text that the HTTP inspector took for HTTP. */
function detectedHttp({ detectsHttp10 }: HttpTraits): Init<typeof FilterChainMatchSchema> {
  const applicationProtocols = detectsHttp10 ? ["http/1.0", "http/1.1", "h2c"] : ["http/1.1", "h2c"];
  return { transportProtocol: "raw_buffer", applicationProtocols };
}

/** Canonical bytes of a chain for any protocol. */
export function tcpChain(input: TcpChainInput): Uint8Array {
  return bytesOf(FilterChainSchema, tcpFilterChain(input));
}

/** The chain as a part of a listener. */
export function tcpFilterChain(input: TcpChainInput): Init<typeof FilterChainSchema> {
  const { origin, traits, mesh } = input;
  return {
    ...(!takesAll(input) && { filterChainMatch: tcpMatch(input) }),
    filters: tcpProxy({ ...input, rule: input.rule?.spec }, traits, mesh),
    transportSocketConnectTimeout: HANDSHAKE_TIMEOUT,
    ...(origin && { metadata: { filterMetadata: { istio: { config: configOrigin(origin) } } } }),
  };
}

/** Whether a chain takes every connection; a listener can have one such chain. */
export function takesAll({ serverNames, ranges }: TcpChain): boolean {
  return (serverNames.length === 0 || serverNames.includes("*")) && ranges.length === 0;
}

function tcpMatch({ serverNames, ranges }: TcpChain): Init<typeof FilterChainMatchSchema> {
  return {
    ...(!serverNames.includes("*") && { serverNames: [...serverNames].sort() }),
    prefixRanges: [...ranges].sort().flatMap((range) => cidrRange(range) ?? []),
  };
}
