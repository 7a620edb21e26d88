/** Principals of policies, and the trust domains that stand for one another. */

/** The trust domain that a policy may always write for the mesh's own. */
const OWN_TRUST_DOMAIN = "cluster.local";

/**
 * Principals of the mesh's trust domain, or of one of its aliases, stand for the same account in all of them. One that
 * leaves the domain open, or that is of another mesh, stands for itself.
 */
export function withAliases(values: readonly string[], trustDomains: readonly string[]): readonly string[] {
  return values.flatMap((value) => {
    const [domain = "", ...rest] = value.split("/");
    if (rest.length !== 4 || domain === "*") return [value];
    if (domain !== OWN_TRUST_DOMAIN && !trustDomains.some((own) => fits(own, domain))) return [value];
    const all = trustDomains.map((own) => (endsAs(own, domain) ? value : [own, ...rest].join("/")));
    return [...new Set(all)];
  });
}

function fits(domain: string, pattern: string): boolean {
  return domain === pattern || pattern === "*" || startsAs(domain, pattern) || endsAs(domain, pattern);
}

function startsAs(domain: string, pattern: string): boolean {
  return pattern.endsWith("*") && domain.startsWith(pattern.slice(0, -1));
}

function endsAs(domain: string, pattern: string): boolean {
  return pattern.startsWith("*") && domain.endsWith(pattern.slice(1));
}
