/** Addresses by which services are called, and to which listeners bind. */
import { isIP, isIPv4 } from "node:net";
import type { Service } from "#model/service/service.ts";
import type { IpMode } from "../traits/traits.ts";

/** What of a proxy decides which addresses it uses. */
export interface AddressTraits {
  readonly ipMode: IpMode;
  /** Uses both families where it has both. */
  readonly dualStack: boolean;
  /** Uses addresses that were allocated for hosts without one. */
  readonly autoAddresses: boolean;
}

/** The addresses of a service for a proxy, first the main one. None for headless services and hosts without any. */
export function serviceAddresses(service: Service, traits: AddressTraits): readonly string[] {
  const { addresses, autoAddress, autoAddress6 } = service;
  if (addresses.length === 0) {
    const allocated = [autoAddress, autoAddress6].filter((address) => address !== undefined);
    return traits.autoAddresses ? ofFamilies(allocated, traits) : [];
  }
  // Kubernetes gives a service an address of each family; a ServiceEntry means what it says.
  if (service.registry !== "Kubernetes") return addresses;
  const usable = ofFamilies(addresses, traits);
  return usable.length > 0 ? usable : addresses.slice(0, 1);
}

/**
 * Whether the addresses of a service are one destination, in two families: those of a Kubernetes service are, and those
 * that were allocated; each address that a ServiceEntry names is a destination of its own.
 */
export function isOneDestination({ registry, addresses }: Service): boolean {
  return registry === "Kubernetes" || addresses.length === 0;
}

/** A proxy with both families that is not to use both takes that of the first address. */
function ofFamilies(addresses: readonly string[], { ipMode, dualStack }: AddressTraits): readonly string[] {
  if (ipMode === "dual" && dualStack) return addresses;
  const family = ipMode !== "dual" ? ipMode : isVersion4(addresses[0] ?? "") ? "ipv4" : "ipv6";
  return addresses.filter((address) => isVersion4(address) === (family === "ipv4"));
}

/** Also of a range of addresses. */
function isVersion4(address: string): boolean {
  return isIPv4(address.split("/")[0] ?? "");
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
