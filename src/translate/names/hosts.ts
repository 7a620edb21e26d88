/** Host names of the API among services and routes; what wildcards mean is in `#config/host.ts`. */
import { isSubsetOf, isWildcard } from "#config/terms/host.ts";

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

/** Of hosts that may be written `namespace/name`, the names that are for objects of a namespace. */
export function hostsForNamespace(hosts: readonly string[], namespace: string): readonly string[] {
  return hosts.flatMap((host) => {
    const [home, name] = host.split("/");
    if (name === undefined) return [host];
    return home === namespace || home === "*" ? [name] : [];
  });
}

/** Sorts exact names before wildcards, long before short, then by letter. */
export function bySpecificity(a: string, b: string): number {
  if (isWildcard(a) !== isWildcard(b)) return isWildcard(a) ? 1 : -1;
  return b.length - a.length || (a < b ? -1 : a > b ? 1 : 0);
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
