/** Where listeners listen. */
import { type AddressSchema, SocketAddress_Protocol } from "#gen/envoy/config/core/v3/address_pb.ts";
import type {
  AdditionalAddressSchema,
  Listener_ConnectionBalanceConfigSchema,
  ListenerSchema,
} from "#gen/envoy/config/listener/v3/listener_pb.ts";
import type { Init } from "../wire/encode.ts";
import type { TcpTraits } from "./traits.ts";

/** What a socket file is told from an address by. */
export const UNIX_PREFIX = "unix://";

/** An address and port, or a socket file, which has none. */
export function socketAddress(address: string, port: number): Init<typeof AddressSchema> {
  if (address.startsWith(UNIX_PREFIX)) {
    return { address: { case: "pipe", value: { path: address.slice(UNIX_PREFIX.length) } } };
  }
  return {
    address: { case: "socketAddress", value: { address, portSpecifier: { case: "portValue", value: port } } },
  };
}

/** The same address for datagrams. */
export function udpAddress(address: string, port: number): Init<typeof AddressSchema> {
  const protocol = SocketAddress_Protocol.UDP;
  return {
    address: { case: "socketAddress", value: { protocol, address, portSpecifier: { case: "portValue", value: port } } },
  };
}

/** Further addresses of one listener. */
export function additionalAddresses(
  addresses: readonly string[],
  port: number,
): Init<typeof AdditionalAddressSchema>[] {
  return addresses.map((address) => ({ address: socketAddress(address, port) }));
}

/** One connection after the other, so that all threads get some; unless the control plane is told otherwise. */
export function acceptedAtOnce({ connectionsPerEvent = 1 }: TcpTraits): Init<typeof ListenerSchema> {
  return connectionsPerEvent > 0 ? { maxConnectionsToAcceptPerSocketEvent: connectionsPerEvent } : {};
}

/** Spreads connections evenly over Envoy's threads, for few long ones. */
export const EXACT_BALANCE: Init<typeof Listener_ConnectionBalanceConfigSchema> = {
  balanceType: { case: "exactBalance", value: {} },
};
