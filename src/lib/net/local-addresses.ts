/**
 * Configuration may name any server to fetch from, and answers of that server any other. What only this machine can
 * reach (itself, its link, the cloud's metadata server) must not be asked on their behalf.
 */
import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from "node:dns";
import { BlockList, isIP, isIPv6, type LookupFunction } from "node:net";

const LOCAL = new BlockList();
LOCAL.addSubnet("127.0.0.0", 8);
LOCAL.addSubnet("0.0.0.0", 8);
LOCAL.addSubnet("169.254.0.0", 16);
LOCAL.addAddress("::", "ipv6");
LOCAL.addAddress("::1", "ipv6");
LOCAL.addSubnet("fe80::", 10, "ipv6");
// Metadata servers of clouds that are not on the link.
LOCAL.addAddress("100.100.100.200");
LOCAL.addAddress("168.63.129.16");
LOCAL.addAddress("fd00:ec2::254", "ipv6");

const METADATA_NAMES: ReadonlySet<string> = new Set(["metadata.google.internal", "metadata.goog", "metadata"]);

/** Whether an address means this machine, its link or the cloud's metadata server. */
export function isLocalAddress(address: string): boolean {
  return isIn(LOCAL, address);
}

/** Whether a URL leads, without asking DNS, to where only this machine can go. */
export function isLocalUrl(url: URL): boolean {
  const host = bareHost(url);
  return host === "localhost" || host.endsWith(".localhost") || METADATA_NAMES.has(host) || isLocalAddress(host);
}

/** Whether an IP address is in a list; other texts are in none. */
export function isIn(list: BlockList, address: string): boolean {
  return isIP(address) !== 0 && list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}

/** The host of a URL without brackets and final dot, in lower case. */
export function bareHost({ hostname }: URL): string {
  return hostname
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "")
    .toLowerCase();
}

/** Looks names up and fails for those with a refused address: the check holds for the very address that is used. */
export function checkedLookup(
  isRefused: (address: string) => boolean,
  refusal: (host: string) => Error,
): LookupFunction {
  return (hostname, options: LookupOptions, callback) => {
    dnsLookup(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
      const [first] = addresses ?? [];
      if (error !== null || first === undefined) callback(error ?? refusal(hostname), []);
      else if (addresses.some(({ address }) => isRefused(address))) callback(refusal(hostname), []);
      else if (options.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}
