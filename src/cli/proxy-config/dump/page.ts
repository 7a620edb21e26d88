/** The pages of `proxy-config`: from what Envoy answered to what is printed. */
import type { JsonObject, JsonValue, Registry } from "@bufbuild/protobuf";
import { formatVersions } from "./bootstrap.ts";
import { clustersOf, formatClusters } from "./clusters.ts";
import { type ConfigDump, configDumpOf, normalised } from "./dump.ts";
import { assignmentsOf, clusterStatusesOf, formatAssignments, formatClusterStatuses } from "./endpoints.ts";
import { formatExtensions } from "./extensions.ts";
import { formatDump } from "./json.ts";
import { formatListeners, listenersOf } from "./listeners.ts";
import { formatRoutes, routesOf } from "./routes.ts";
import { formatSecrets, secretsOf } from "./secrets.ts";
import { formatSummary, type SummaryFilter } from "./summary.ts";

export interface PageOptions {
  readonly format: "short" | "json" | "yaml";
  readonly filter: SummaryFilter;
  readonly verbose: boolean;
  readonly withHeaders: boolean;
  readonly now: Date;
  readonly registry: Registry;
}

/** A table, or what it is made from. */
interface Shown {
  readonly table: () => string;
  readonly data: () => JsonValue;
}

const CLUSTERS_TYPE = "type.googleapis.com/envoy.admin.v3.Clusters";

/** The text of a page for a config dump, or for Envoy's page of clusters where it is about endpoints. */
export function formatPage(name: string, answer: JsonObject, options: PageOptions): string {
  const { table, data } = pageOf(name, answer, options);
  return options.format === "short" ? table() : formatDump(data(), options.format);
}

function pageOf(name: string, answer: JsonObject, options: PageOptions): Shown {
  const { filter, registry } = options;
  const isStatusPage = "cluster_statuses" in answer || "clusterStatuses" in answer;
  if (name === "endpoint" && (isStatusPage || !("configs" in answer))) {
    const statuses = clusterStatusesOf(normalised({ ...answer, "@type": CLUSTERS_TYPE }, registry), filter);
    return { table: () => formatClusterStatuses(statuses, filter), data: () => [...statuses] };
  }
  const dump = configDumpOf(answer, registry);
  if (name === "all") return { table: () => formatSummary(dump, options), data: () => answer };
  return pageOfDump(name, dump, options);
}

function pageOfDump(name: string, dump: ConfigDump, { filter, verbose, now }: PageOptions): Shown {
  switch (name) {
    case "bootstrap":
      return { table: () => formatVersions(dump), data: () => dump.section("BootstrapConfigDump") };
    case "cluster":
      return {
        table: () => formatClusters(clustersOf(dump, filter), false),
        data: () => [...clustersOf(dump, filter)],
      };
    case "listener":
      return {
        table: () => formatListeners(listenersOf(dump, filter), { verbose }),
        data: () => [...listenersOf(dump, filter)],
      };
    case "route":
      return {
        table: () => formatRoutes(routesOf(dump, filter), { verbose }),
        data: () => [...routesOf(dump, filter)],
      };
    case "secret":
      return { table: () => formatSecrets(secretsOf(dump, now)), data: () => dump.section("SecretsConfigDump") };
    case "ecds":
      return { table: () => formatExtensions(dump), data: () => dump.find("EcdsConfigDump") ?? {} };
    default:
      return {
        table: () => formatAssignments(assignmentsOf(dump, filter), false),
        data: () => [...assignmentsOf(dump, filter)],
      };
  }
}
