/** Host names as the API uses them: exact, `*`, or `*` followed by a suffix. */
import { isIP } from "node:net";

/** Whether the name has a wildcard in front. */
export function isWildcard(host: string): boolean {
  return host.startsWith("*");
}

/** Whether some name fits both. Symmetric: `*.com` and `foo.com` match, as do `*.com` and `*.foo.com`. */
export function hostsMatch(a: string, b: string): boolean {
  if (isWildcard(a) && isWildcard(b)) {
    return a.length < b.length ? b.slice(1).endsWith(a.slice(1)) : a.slice(1).endsWith(b.slice(1));
  }
  if (isWildcard(a)) return b.endsWith(a.slice(1));
  if (isWildcard(b)) return a.endsWith(b.slice(1));
  return a === b;
}

/** Whether every name that fits `host` fits `other`. */
export function isSubsetOf(host: string, other: string): boolean {
  if (isWildcard(host)) {
    return isWildcard(other) && host.length >= other.length && host.slice(1).endsWith(other.slice(1));
  }
  return isWildcard(other) ? host.endsWith(other.slice(1)) : host === other;
}

/** The names that fit one of `hosts` and one of `others`: of each matching pair the narrower one. */
export function intersectHosts(hosts: readonly string[], others: readonly string[]): string[] {
  const found = new Set<string>();
  for (const host of hosts) {
    for (const other of others) {
      if (isSubsetOf(host, other)) found.add(host);
      else if (isSubsetOf(other, host)) found.add(other);
    }
  }
  return [...found];
}

/** Sorts exact names before wildcards, long before short, then by letter. */
export function bySpecificity(a: string, b: string): number {
  if (isWildcard(a) !== isWildcard(b)) return isWildcard(a) ? 1 : -1;
  return b.length - a.length || (a < b ? -1 : a > b ? 1 : 0);
}

/**
 * A short name in a configuration object means the service of that name in the object's namespace. Names with a dot, `*`
 * and addresses are complete already.
 */
export function completeHost(host: string, namespace: string, domain: string): string {
  if (host === "" || host === "*" || host.includes(".") || isIP(host) !== 0) return host;
  return domain === "" ? `${host}.${namespace}` : `${host}.${namespace}.svc.${domain}`;
}

/**
 * The entry for a host: its own, else that of the longest wildcard that covers it. `exact` and `wildcards` are keyed by
 * host name.
 */
export function mostSpecific<T>(
  host: string,
  exact: ReadonlyMap<string, T>,
  wildcards: ReadonlyMap<string, T>,
): T | undefined {
  const found = isWildcard(host) ? wildcards.get(host) : exact.get(host);
  if (found !== undefined) return found;
  let longest = "";
  for (const wildcard of wildcards.keys()) {
    if (wildcard.length > longest.length && isSubsetOf(host, wildcard)) longest = wildcard;
  }
  return wildcards.get(longest);
}
