/** ExternalName services are other names of services: whoever is called so has to know. */
import { compareText } from "#lib/text/compare-text.ts";
import type { Service } from "#model/service/service.ts";

/** The services, those that others are aliases of with these aliases. */
export function withAliases(services: readonly Service[]): readonly Service[] {
  const aliases = services.filter(({ aliasOf }) => aliasOf !== undefined);
  if (aliases.length === 0) return services;
  const targets = new Map(aliases.map(({ hostname, aliasOf = "" }) => [hostname, aliasOf]));
  const byTarget = Map.groupBy(aliases, ({ hostname }) => lastOf(hostname, targets));
  return services.map((service) => {
    const own = service.aliasOf === undefined ? byTarget.get(service.hostname) : undefined;
    if (own === undefined) return service;
    const names = own.map(({ hostname, namespace }) => ({ hostname, namespace }));
    return {
      ...service,
      aliases: names.sort((a, b) => compareText(a.namespace, b.namespace) || compareText(a.hostname, b.hostname)),
    };
  });
}

/** Follows an alias to what is none itself; undefined where it leads back to itself. */
function lastOf(alias: string, targets: ReadonlyMap<string, string>): string | undefined {
  const seen = new Set([alias]);
  let host = targets.get(alias) ?? alias;
  while (!seen.has(host)) {
    const next = targets.get(host);
    if (next === undefined) return host;
    seen.add(host);
    host = next;
  }
  return undefined;
}
