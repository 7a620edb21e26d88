/** `proxy-config all`: one table after the other. */
import { formatVersions } from "./bootstrap.ts";
import { type ClusterFilter, clustersOf, formatClusters } from "./clusters.ts";
import type { ConfigDump } from "./dump.ts";
import { assignmentsOf, type EndpointFilter, formatAssignments } from "./endpoints.ts";
import { formatListeners, type ListenerFilter, listenersOf } from "./listeners.ts";
import { formatRoutes, routesOf } from "./routes.ts";
import { formatSecrets, secretsOf } from "./secrets.ts";

export type SummaryFilter = ClusterFilter & ListenerFilter & EndpointFilter & { readonly name?: string | undefined };

export interface SummaryOptions {
  readonly filter: SummaryFilter;
  readonly verbose: boolean;
  readonly withHeaders: boolean;
  readonly now: Date;
}

/** All tables, each name with its kind. */
export function formatSummary(dump: ConfigDump, { filter, verbose, withHeaders, now }: SummaryOptions): string {
  const tables = [
    ["BOOTSTRAP INFO", formatVersions(dump)],
    ["CLUSTER INFO", formatClusters(clustersOf(dump, filter), true)],
    ["LISTENER INFO", formatListeners(listenersOf(dump, filter), { verbose, withNames: true })],
    ["ROUTE INFO", formatRoutes(routesOf(dump, filter), { verbose, withType: true })],
    ["SECRET INFO", formatSecrets(secretsOf(dump, now), true)],
    ["ENDPOINTS INFO", formatAssignments(assignmentsOf(dump, filter), true)],
  ] as const;
  return tables.map(([head, table]) => `${withHeaders ? `------ ${head} ------\n\n` : ""}${table}`).join("\n");
}
