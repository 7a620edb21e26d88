/** Which servers modules are fetched from, whoever names them: configuration, or the answers of other servers. */
import { BlockList, type LookupFunction } from "node:net";
import { MeshError } from "#lib/mesh-error.ts";
import { bareHost, checkedLookup, isIn, isLocalAddress, isLocalUrl } from "#lib/net/local-addresses.ts";

const PRIVATE = new BlockList();
PRIVATE.addSubnet("10.0.0.0", 8);
PRIVATE.addSubnet("172.16.0.0", 12);
PRIVATE.addSubnet("192.168.0.0", 16);
PRIVATE.addSubnet("fc00::", 7, "ipv6");

/** Throws when a URL leads, without asking DNS, to where only this machine can go. */
export function assertNotLocal(url: URL): void {
  if (isLocalUrl(url)) throw refused(bareHost(url));
}

/** Looks names up and refuses those that lead to this machine. */
export const guardedLookup: LookupFunction = checkedLookup(isLocalAddress, refused);

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
  if (isIn(PRIVATE, host)) throw unsafe(`${host} is a private address`);
  assertNotLocal(url);
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
