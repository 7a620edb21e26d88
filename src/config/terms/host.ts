/** Host names as the API uses them: exact, `*`, or `*` followed by a suffix; and short ones. */
import { isIP } from "node:net";

/** Whether the name has a wildcard in front. */
export function isWildcard(host: string): boolean {
  return host.startsWith("*");
}

/** Whether some name fits both. Symmetric: `*.com` and `foo.com` match, as do `*.com` and `*.foo.com`. */
export function hostsMatch(a: string, b: string): boolean {
  return isSubsetOf(a, b) || isSubsetOf(b, a);
}

/** Whether every name that fits `host` fits `other`. */
export function isSubsetOf(host: string, other: string): boolean {
  if (!isWildcard(other)) return host === other;
  const suffix = other.slice(1);
  if (!isWildcard(host)) return host.endsWith(suffix);
  return host.length >= other.length && host.slice(1).endsWith(suffix);
}

/** Tells whether a host is a subset of one of many, in a time that does not depend on how many these are. */
export function hostCover(hosts: readonly string[]): (host: string) => boolean {
  const names = new Set(hosts);
  const suffixLengths = new Set(hosts.filter(isWildcard).map((host) => host.length - 1));
  return (host) => {
    if (names.has(host)) return true;
    const name = isWildcard(host) ? host.slice(1) : host;
    return suffixLengths
      .values()
      .some((length) => length <= name.length && names.has(`*${name.slice(name.length - length)}`));
  };
}

/**
 * A short name in a configuration object means the service of that name in the object's namespace. Names with a dot, `*`
 * and addresses are complete already.
 */
export function completeHost(host: string, namespace: string, domain: string): string {
  if (host === "" || host === "*" || host.includes(".") || isIP(host) !== 0) return host;
  const inNamespace = namespace === "" ? host : `${host}.${namespace}`;
  return domain === "" ? inNamespace : `${inNamespace}.svc.${domain}`;
}
