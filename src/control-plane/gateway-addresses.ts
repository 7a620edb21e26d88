/** The part that looks up gateways between networks which are known by a host name, with its setting. */
import type { Logger } from "#lib/log/log.ts";
import {
  type GatewayAddressSource,
  type GatewayAddressTaker,
  gatewayAddressSource,
} from "#sources/gateways/gateway-address-source.ts";
import { resolveName } from "#sources/gateways/resolve-name.ts";

export interface GatewayAddressInput {
  /** RESOLVE_HOSTNAME_GATEWAYS */
  readonly resolves: boolean;
  readonly taker: GatewayAddressTaker;
  readonly log: Logger;
}

/** What looks up names as the setting says. */
export function gatewayAddressesOf({ resolves, taker, log }: GatewayAddressInput): GatewayAddressSource {
  const unresolved = async (host: string) => {
    log.warn("a network gateway is left out: it is known by a host name, and RESOLVE_HOSTNAME_GATEWAYS is off", {
      host,
    });
    return { value: [], holdsMs: Number.POSITIVE_INFINITY };
  };
  return gatewayAddressSource({ taker, resolve: resolves ? resolveName : unresolved, log });
}
