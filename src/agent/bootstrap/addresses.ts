/** Which addresses Envoy's own listeners and clusters use. */
export interface AddressFamily {
  readonly localhost: string;
  readonly wildcard: string;
  /** For dual stack: the other family. */
  readonly additionalLocalhost?: string;
  readonly additionalWildcard?: string;
  readonly dnsLookupFamily: "V4_ONLY" | "V6_ONLY" | "ALL";
}

const V4 = { localhost: "127.0.0.1", wildcard: "0.0.0.0" };
const V6 = { localhost: "::1", wildcard: "::" };

/** IPv4 unless all addresses are IPv6; with dual stack the family of the first address leads. */
export function addressFamily(addresses: readonly string[], dualStack: boolean): AddressFamily {
  const six = addresses.filter(isSix).length;
  if (six === addresses.length && six > 0) return { ...V6, dnsLookupFamily: "V6_ONLY" };
  if (six === 0 || !dualStack) return { ...V4, dnsLookupFamily: "V4_ONLY" };
  const [first, second] = isSix(addresses[0] ?? "") ? [V6, V4] : [V4, V6];
  return {
    ...first,
    additionalLocalhost: second.localhost,
    additionalWildcard: second.wildcard,
    dnsLookupFamily: "ALL",
  };
}

/** Of what is known to be an address: Node's own test takes milliseconds of a start to compile. */
function isSix(address: string): boolean {
  return address.includes(":");
}

/** True when the proxy has only IPv6 addresses. */
export function isIPv6Only(addresses: readonly string[]): boolean {
  return addressFamily(addresses, false).localhost === V6.localhost;
}
