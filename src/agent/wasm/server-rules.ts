/** Which servers modules are fetched from, whoever names them: configuration, or the answers of other servers. */
import { MeshError } from "#lib/mesh-error.ts";
import type { ProxyEnvironment } from "#lib/net/environment-proxy.ts";
import { FetchGuard } from "#lib/net/fetch-guard.ts";

export interface ServerRules {
  /** WASM_INSECURE_REGISTRIES: hosts that may speak plain text or have any certificate and any address; `*` for all but the last. */
  readonly insecureHosts: readonly string[];
  /** WASM_ALLOW_LOCAL_SERVERS */
  readonly allowLocal: boolean;
  /** ALLOWED_CIDRS_IN_WASM_FETCH: ranges of private addresses. */
  readonly allowedRanges: readonly string[];
  /** `cluster.local`: services of the cluster may have private addresses. */
  readonly clusterDomain: string;
  /** What names the proxies through which servers are reached. */
  readonly proxies: ProxyEnvironment;
}

/** Guards the requests that fetch a module from `start`. */
export function guardFor(start: URL, { insecureHosts, ...rules }: ServerRules): FetchGuard {
  return new FetchGuard(start, {
    ...rules,
    blockedRanges: [],
    isTrusted: (url) => isListed(url, insecureHosts),
    refusal: (host, reason) =>
      new MeshError(
        "WASM_SERVER_REFUSED",
        `${host} is ${reason}: list the host in WASM_INSECURE_REGISTRIES, a private range in ALLOWED_CIDRS_IN_WASM_FETCH, or set WASM_ALLOW_LOCAL_SERVERS`,
      ),
  });
}

/** Whether the user accepts plain text and unverified certificates from a server. */
export function isInsecure(url: URL, { insecureHosts }: Pick<ServerRules, "insecureHosts">): boolean {
  return insecureHosts.includes("*") || isListed(url, insecureHosts);
}

/** A URL does not show the usual port, which a list may. */
function isListed({ host, hostname, port, protocol }: URL, hosts: readonly string[]): boolean {
  const usualPort = protocol === "https:" ? "443" : "80";
  return hosts.includes(host) || (port === "" && hosts.includes(`${hostname}:${usualPort}`));
}

/**
 * Throws when a challenge (`WWW-Authenticate`) names a place to get tokens from that no registry has: a registry can
 * name any, and our credentials would go there.
 */
export function assertRealmsAllowed(challenge: string, guard: FetchGuard): void {
  for (const [, basic, realm = ""] of challenge.matchAll(/(basic\s+)?realm="([^"]*)"/gi)) {
    // Basic authentication asks no other server; its realm is a name for people unless it looks like one.
    if (basic === undefined || URL.canParse(realm)) assertRealmAllowed(realm, guard);
  }
}

function assertRealmAllowed(realm: string, guard: FetchGuard): void {
  if (!URL.canParse(realm)) throw unsafe(`"${realm}" is no URL`);
  const url = new URL(realm);
  if (url.protocol !== "https:" && url.protocol !== "http:") throw unsafe(`its scheme is ${url.protocol}`);
  guard.check(url);
}

function unsafe(reason: string): MeshError {
  return new MeshError("WASM_SERVER_REFUSED", `rejected unsafe bearer realm: ${reason}`);
}
