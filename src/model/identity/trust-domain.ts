/** Principals of policies, names of servers, and the trust domains that stand for one another. */
import { formatSpiffeId, parseSpiffeId } from "#lib/pki/spiffe-id.ts";

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

/** Names of servers, sorted; each SPIFFE id of a workload among them also in the given trust domains. */
export function inTrustDomains(names: readonly string[], trustDomains: readonly string[]): readonly string[] {
  const aliases = names.flatMap((name) => {
    const id = parseSpiffeId(name);
    return id === undefined ? [] : trustDomains.map((trustDomain) => formatSpiffeId({ ...id, trustDomain }));
  });
  return [...new Set([...names, ...aliases])].sort();
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
