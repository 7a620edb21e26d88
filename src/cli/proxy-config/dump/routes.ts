/** `proxy-config route`. */
import type { JsonObject } from "@bufbuild/protobuf";
import { MeshError } from "#lib/mesh-error.ts";
import { formatGoTable } from "#lib/print/go-table.ts";
import type { ConfigDump } from "./dump.ts";
import { listAt, objectAt, textAt, textsAt } from "./json.ts";
import { managedBy } from "./managed-by.ts";
import { describeMatch } from "./route-text.ts";

export interface RouteFilter {
  readonly name?: string | undefined;
}

/** The routes of a dump that the filter lets through; those that are called by a number in the order of numbers. */
export function routesOf(dump: ConfigDump, { name = "" }: RouteFilter): readonly JsonObject[] {
  const section = dump.section("RoutesConfigDump");
  const all = [...listAt(section, "dynamicRouteConfigs"), ...listAt(section, "staticRouteConfigs")]
    .flatMap((entry) => objectAt(entry, "routeConfig"))
    .map(({ "@type": _, ...route }) => route);
  if (all.length === 0) throw new MeshError("CONFIG_DUMP_INVALID", "The config dump has no routes");
  return inOrder(all).filter((route) => name === "" || textAt(route, "name") === name);
}

/** The table. */
export function formatRoutes(
  routes: readonly JsonObject[],
  { verbose, withType = false }: { readonly verbose: boolean; readonly withType?: boolean },
): string {
  const nameOf = (route: JsonObject) => `${withType ? "route/" : ""}${textAt(route, "name")}`;
  if (!verbose) {
    const rows = routes.map((route) => [nameOf(route), String(listAt(route, "virtualHosts").length)]);
    return formatGoTable([["NAME", "VIRTUAL HOSTS"], ...rows], 5);
  }
  const rows = routes.flatMap((route) =>
    listAt(route, "virtualHosts").flatMap((host) => {
      const head = [nameOf(route), textAt(host, "name"), describeDomains(textsAt(host, "domains"))];
      const entries = listAt(host, "routes");
      if (entries.length === 0) return [[...head, "/*", "404"]];
      return entries
        .filter((entry) => textAt(entry, "route", "cluster") !== "PassthroughCluster")
        .map((entry) => [...head, describeMatch(entry.match), managedBy(entry)]);
    }),
  );
  return formatGoTable([["NAME", "VHOST NAME", "DOMAINS", "MATCH", "VIRTUAL SERVICE"], ...rows], 5);
}

const MAX_DOMAINS = 2;

/** The domains that say something new: no ports, and no longer forms of a name that is there in short. */
export function describeDomains(domains: readonly string[]): string {
  const [only = ""] = domains;
  if (domains.length < 2) return only;
  const plain = domains.filter((domain) => {
    const colons = domain.split(":").length - 1;
    return colons === 0 || (colons > 2 && domain.endsWith("]"));
  });
  const known = new Set(plain);
  const short = plain.filter((domain) =>
    [".svc.cluster.local", ".svc"].every((end) => !domain.endsWith(end) || !known.has(domain.slice(0, -end.length))),
  );
  if (short.length <= MAX_DOMAINS) return short.join(", ");
  return `${short.slice(0, MAX_DOMAINS).join(", ")} + ${short.length - MAX_DOMAINS} more...`;
}

/** Names that are no numbers stay where they are, and numbers do not go past them. */
function inOrder(routes: readonly JsonObject[]): readonly JsonObject[] {
  const sorted = [...routes];
  const numberOf = (route: JsonObject | undefined) => {
    const name = textAt(route, "name");
    return /^[+-]?\d+$/.test(name) ? Number(name) : Number.NaN;
  };
  for (let end = 1; end < sorted.length; end++) {
    for (let i = end; i > 0 && numberOf(sorted[i]) < numberOf(sorted[i - 1]); i--) {
      const [lower, upper] = [sorted[i], sorted[i - 1]];
      if (lower !== undefined && upper !== undefined) [sorted[i - 1], sorted[i]] = [lower, upper];
    }
  }
  return sorted;
}
