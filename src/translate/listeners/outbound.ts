/** Outbound listeners: they bind no port of their own, connections are handed to them by the address that was called. */
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import { TrafficDirection } from "#gen/envoy/config/core/v3/base_pb.ts";
import type { FilterChainSchema } from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import { ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { listenerAccessLogs } from "../filters/access-log.ts";
import { blackHole, tcpProxy } from "../filters/tcp-proxy.ts";
import {
  listenerName,
  PASSTHROUGH_FILTER_CHAIN,
  VIRTUAL_OUTBOUND,
  VIRTUAL_OUTBOUND_BLACK_HOLE,
  VIRTUAL_OUTBOUND_CATCH_ALL,
} from "../names/names.ts";
import { wildcardAddresses } from "../scope/addresses.ts";
import { acceptedAtOnce, additionalAddresses, EXACT_BALANCE, socketAddress } from "../traits/address.ts";
import type { Interception, IpMode, TcpTraits } from "../traits/traits.ts";
import { bytesOf, duration, type Init } from "../wire/encode.ts";
import { type TcpChain, tcpFilterChain } from "./chains.ts";
import { HTTP_INSPECTOR, TLS_INSPECTOR } from "./inspectors.ts";

/** A listener without its chains, which are parts of it. What is for connections that no chain takes is named `rest`. */
export interface OutboundListenerInput extends TcpChain {
  readonly addresses: readonly string[];
  readonly port: number;
  /** Opens the port itself, where nothing is captured. */
  readonly bindToPort: boolean;
  readonly inspectsTls: boolean;
  readonly inspectsHttp: boolean;
  /** `none`: there is only one chain, and it takes all; `chain`: that of this input; `passthrough`: on as they came. */
  readonly rest: "none" | "chain" | "passthrough";
  /** The cluster of connections to unknown destinations. */
  readonly unknown: string;
  readonly exactBalance: boolean;
  readonly traits: TcpTraits;
  readonly mesh: MeshConfig;
}

/** Canonical bytes of the listener without its chains. */
export function outboundListener(input: OutboundListenerInput): Uint8Array {
  const { addresses, port, mesh, inspectsHttp } = input;
  const [address = "", ...more] = addresses;
  const additional = additionalAddresses(more, port);
  return bytesOf(ListenerSchema, {
    name: listenerName(address, port),
    address: socketAddress(address, port),
    ...(additional.length > 0 && { additionalAddresses: additional }),
    trafficDirection: TrafficDirection.OUTBOUND,
    continueOnListenerFiltersTimeout: true,
    ...(input.bindToPort ? acceptedAtOnce(input.traits) : { bindToPort: false }),
    ...(input.exactBalance && { connectionBalanceConfig: EXACT_BALANCE }),
    listenerFilters: [...(input.inspectsTls ? [TLS_INSPECTOR] : []), ...(inspectsHttp ? [HTTP_INSPECTOR] : [])],
    listenerFiltersTimeout: duration(inspectsHttp ? mesh.protocolDetectionTimeout : 0),
    ...defaultChain(input),
  });
}

function defaultChain(input: OutboundListenerInput): Init<typeof ListenerSchema> {
  switch (input.rest) {
    case "none":
      return {};
    case "chain":
      return { defaultFilterChain: tcpFilterChain(input) };
    case "passthrough":
      return {
        defaultFilterChain: {
          filterChainMatch: {},
          filters: unknownDestination(input),
          name: PASSTHROUGH_FILTER_CHAIN,
        },
      };
  }
}

/** On to where the application wanted, to another proxy, or nowhere. */
function unknownDestination({ unknown, traits, mesh }: Pick<VirtualOutboundInput, "unknown" | "traits" | "mesh">) {
  const target = { statPrefix: unknown, clusters: [unknown], weights: [], subset: "", rule: undefined };
  return tcpProxy({ ...target, protocol: "TCP" }, traits, mesh);
}

/** What the listener for all captured connections depends on. */
export interface VirtualOutboundInput {
  readonly ipMode: IpMode;
  readonly dualStack: boolean;
  readonly ipv4BesideIpv6: boolean;
  readonly interception: Interception;
  readonly unknown: string;
  readonly traits: TcpTraits;
  readonly mesh: MeshConfig;
}

/** Receives all captured connections and hands those on for whose address there is a listener. */
export function virtualOutbound(input: VirtualOutboundInput): Uint8Array {
  const { ipMode, dualStack, ipv4BesideIpv6, interception, mesh } = input;
  const [address = "", ...others] = wildcardAddresses(ipMode);
  const more = ipv4BesideIpv6 ? wildcardAddresses("ipv4") : dualStack ? others : [];
  const port = mesh.proxyListenPort;
  // A connection to the port itself was not captured: passing it on would bring it back here for ever.
  const blackHoleChain: Init<typeof FilterChainSchema> = {
    name: VIRTUAL_OUTBOUND_BLACK_HOLE,
    filterChainMatch: { destinationPort: port },
    filters: [blackHole()],
  };
  return bytesOf(ListenerSchema, {
    name: VIRTUAL_OUTBOUND,
    address: socketAddress(address, port),
    ...(more.length > 0 && { additionalAddresses: additionalAddresses(more, port) }),
    filterChains: [blackHoleChain, { name: VIRTUAL_OUTBOUND_CATCH_ALL, filters: unknownDestination(input) }],
    useOriginalDst: true,
    ...(interception === "TPROXY" && { transparent: true }),
    trafficDirection: TrafficDirection.OUTBOUND,
    accessLog: listenerAccessLogs(mesh),
    ...acceptedAtOnce(input.traits),
  });
}
