/** `proxy-config cluster`. */
import type { JsonObject } from "@bufbuild/protobuf";
import { MeshError } from "#lib/mesh-error.ts";
import { formatGoTable } from "#lib/print/go-table.ts";
import { byClusterKey, clusterKey, hasParts } from "./cluster-key.ts";
import type { ConfigDump } from "./dump.ts";
import { listAt, objectAt, textAt } from "./json.ts";
import { managedBy } from "./managed-by.ts";

export interface ClusterFilter {
  /** Part of the host. */
  readonly fqdn?: string | undefined;
  readonly port?: number | undefined;
  readonly subset?: string | undefined;
  readonly direction?: string | undefined;
}

const HEAD = ["SERVICE FQDN", "PORT", "SUBSET", "DIRECTION", "TYPE", "DESTINATION RULE"];

/** The clusters of a dump that the filter lets through. */
export function clustersOf(dump: ConfigDump, filter: ClusterFilter): readonly JsonObject[] {
  const section = dump.section("ClustersConfigDump");
  const all = [...listAt(section, "dynamicActiveClusters"), ...listAt(section, "staticClusters")]
    .flatMap((entry) => objectAt(entry, "cluster"))
    .map(({ "@type": _, ...cluster }) => cluster);
  if (all.length === 0) throw new MeshError("CONFIG_DUMP_INVALID", "The config dump has no clusters");
  return all
    .filter((cluster) => isWanted(textAt(cluster, "name"), filter))
    .sort((one, other) => byClusterKey(textAt(one, "name"), textAt(other, "name")));
}

/** The table; with a column of full names where it stands beside other tables. */
export function formatClusters(clusters: readonly JsonObject[], withNames: boolean): string {
  const rows = clusters.map((cluster) => {
    const name = textAt(cluster, "name");
    const tail = [textAt(cluster, "type") || "STATIC", managedBy(cluster)];
    const full = withNames && name !== "" ? `cluster/${name}` : name;
    const first = withNames && name !== "" ? [full] : [];
    if (!hasParts(name)) return [...first, full, "-", "-", "-", ...tail];
    const { host, port, subset, direction } = clusterKey(name);
    return [...first, host, String(port), subset || "-", direction, ...tail];
  });
  return formatGoTable([withNames ? ["NAME", ...HEAD] : HEAD, ...rows], 5);
}

function isWanted(name: string, { fqdn = "", port = 0, subset = "", direction = "" }: ClusterFilter): boolean {
  return [fqdn, direction, subset].every((part) => name.includes(part)) && (port === 0 || name.includes(`|${port}|`));
}
