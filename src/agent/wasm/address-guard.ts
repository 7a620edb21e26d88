/**
 * Configuration may name any server to fetch from, and answers of that server any other. What only this machine can
 * reach (itself, its link, the cloud's metadata server) must not be asked on their behalf.
 */
import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from "node:dns";
import { BlockList, isIP, isIPv6, type LookupFunction } from "node:net";
import { MeshError } from "#lib/mesh-error.ts";

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

const PRIVATE = new BlockList();
PRIVATE.addSubnet("10.0.0.0", 8);
PRIVATE.addSubnet("172.16.0.0", 12);
PRIVATE.addSubnet("192.168.0.0", 16);
PRIVATE.addSubnet("fc00::", 7, "ipv6");

const METADATA_NAMES: ReadonlySet<string> = new Set(["metadata.google.internal", "metadata.goog", "metadata"]);

/** Whether an address means this machine, its link or the cloud's metadata server. */
export function isLocalAddress(address: string): boolean {
  return matches(LOCAL, address);
}

/** Throws when a URL leads, without asking DNS, to where only this machine can go. */
export function assertNotLocal(url: URL): void {
  const host = bareHost(url);
  if (host === "localhost" || host.endsWith(".localhost") || METADATA_NAMES.has(host) || isLocalAddress(host))
    throw refused(host);
}

/** Looks names up and refuses those that lead to this machine: the check holds for the very address that is used. */
export const guardedLookup: LookupFunction = (hostname, options: LookupOptions, callback) => {
  dnsLookup(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
    const [first] = addresses ?? [];
    if (error !== null || first === undefined) callback(error ?? refused(hostname), []);
    else if (addresses.some(({ address }) => isLocalAddress(address))) callback(refused(hostname), []);
    else if (options.all === true) callback(null, addresses);
    else callback(null, first.address, first.family);
  });
};

/**
 * Throws when a challenge (`WWW-Authenticate`) names a place to get tokens from that no registry has: a registry can
 * name any, and our credentials would go there.
 */
export function assertRealmsAllowed(challenge: string, mayBeLocal: (host: string) => boolean = () => false): void {
  for (const [, basic, realm = ""] of challenge.matchAll(/(basic\s+)?realm="([^"]*)"/gi)) {
    // Basic authentication asks no other server; its realm is a name for people unless it looks like one.
    if (basic === undefined || URL.canParse(realm)) assertRealmAllowed(realm, mayBeLocal);
  }
}

function assertRealmAllowed(realm: string, mayBeLocal: (host: string) => boolean): void {
  if (!URL.canParse(realm)) throw unsafe(`"${realm}" is no URL`);
  const url = new URL(realm);
  if (url.protocol !== "http:" && url.protocol !== "https:") throw unsafe(`its scheme is ${url.protocol}`);
  const host = bareHost(url);
  if (host === "") throw unsafe("it has no host");
  if (mayBeLocal(url.host)) return;
  if (matches(PRIVATE, host)) throw unsafe(`${host} is a private address`);
  assertNotLocal(url);
}

function matches(blocked: BlockList, address: string): boolean {
  if (isIP(address) === 0) return false;
  return blocked.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}

function bareHost({ hostname }: URL): string {
  return hostname
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "")
    .toLowerCase();
}

function refused(host: string): MeshError {
  return new MeshError(
    "WASM_SERVER_REFUSED",
    `${host} is this machine or its link, from which modules are fetched only with WASM_ALLOW_LOCAL_SERVERS`,
  );
}

function unsafe(reason: string): MeshError {
  return new MeshError("WASM_SERVER_REFUSED", `rejected unsafe bearer realm: ${reason}`);
}
