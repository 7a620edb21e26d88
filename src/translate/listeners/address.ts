/** Where listeners listen. */
import type { AddressSchema } from "#gen/envoy/config/core/v3/address_pb.ts";
import type {
  AdditionalAddressSchema,
  Listener_ConnectionBalanceConfigSchema,
} from "#gen/envoy/config/listener/v3/listener_pb.ts";
import type { Init } from "../encode.ts";

/** An address and port. */
export function socketAddress(address: string, port: number): Init<typeof AddressSchema> {
  return {
    address: { case: "socketAddress", value: { address, portSpecifier: { case: "portValue", value: port } } },
  };
}

/** Further addresses of one listener. */
export function additionalAddresses(
  addresses: readonly string[],
  port: number,
): Init<typeof AdditionalAddressSchema>[] {
  return addresses.map((address) => ({ address: socketAddress(address, port) }));
}

/** Spreads connections evenly over Envoy's threads, for few long ones. */
export const EXACT_BALANCE: Init<typeof Listener_ConnectionBalanceConfigSchema> = {
  balanceType: { case: "exactBalance", value: {} },
};
