/** Addresses by which services are called, and to which listeners bind. */
import { isIP, isIPv4, isIPv6 } from "node:net";
import type { Service } from "#model/service.ts";
import type { IpMode } from "../traits.ts";

/** What of a proxy decides which addresses it uses. */
export interface AddressTraits {
  readonly ipMode: IpMode;
  /** Uses addresses that were allocated for hosts without one. */
  readonly autoAddresses: boolean;
}

/** The addresses of a service for a proxy, first the main one. None for headless services and hosts without any. */
export function serviceAddresses(service: Service, traits: AddressTraits): readonly string[] {
  if (service.addresses.length > 0) return ownAddresses(service, traits.ipMode);
  if (!traits.autoAddresses) return [];
  const { autoAddress, autoAddress6 } = service;
  const address = traits.ipMode === "ipv6" ? autoAddress6 : (autoAddress ?? (traits.ipMode === "dual" && autoAddress6));
  return address ? [address] : [];
}

/** Kubernetes gives a service an address of each family; a ServiceEntry means what it says. */
function ownAddresses({ addresses, registry }: Service, ipMode: IpMode): readonly string[] {
  if (registry !== "Kubernetes" || ipMode === "dual") return addresses;
  const usable = addresses.filter((address) => (ipMode === "ipv4" ? isIPv4(address) : isIPv6(address)));
  return usable.length > 0 ? usable : addresses.slice(0, 1);
}

/** The first address by which others reach a proxy; undefined when it has only local ones. */
export function globalAddress(addresses: readonly string[]): string | undefined {
  return addresses.find((address) => isIP(address) !== 0 && !LOCAL.test(address));
}

/** Loopback, link-local, multicast and unspecified addresses. */
const LOCAL = /^(127\.|169\.254\.|22[4-9]\.|23\d\.|0\.0\.0\.0$|255\.255\.255\.255$|::1?$|fe[89ab]|ff)/i;

/** All addresses of the machine, in each family of the proxy. */
export function wildcardAddresses(ipMode: IpMode): readonly string[] {
  return { ipv4: ["0.0.0.0"], ipv6: ["::"], dual: ["0.0.0.0", "::"] }[ipMode];
}

/** The loopback addresses, in each family of the proxy. */
export function localAddresses(ipMode: IpMode): readonly string[] {
  return { ipv4: ["127.0.0.1"], ipv6: ["::1"], dual: ["127.0.0.1", "::1"] }[ipMode];
}
