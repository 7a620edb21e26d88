/** Where workloads are, and what their labels say about it. */
import type { ConfigObject } from "#config/schema/config-object.ts";
import {
  OLD_REGION_LABEL,
  OLD_ZONE_LABEL,
  REGION_LABEL,
  SUBZONE_LABEL,
  statedLocality,
  ZONE_LABEL,
} from "#config/terms/topology-labels.ts";
import type { Locality } from "#model/service/endpoint.ts";

type Labels = Readonly<Record<string, string>>;

/** The locality that labels of a workload state; a label cannot hold slashes, so dots stand for them. */
export function labelledLocality(labels: Labels): Locality {
  const label = statedLocality(labels);
  return label.includes("/") ? label : label.replaceAll(".", "/");
}

/** The locality of what runs on a node. */
export function nodeLocality(node: ConfigObject | undefined): Locality {
  const labels = node?.metadata.labels ?? {};
  const parts = [
    labels[REGION_LABEL] || labels[OLD_REGION_LABEL],
    labels[ZONE_LABEL] || labels[OLD_ZONE_LABEL],
    labels[SUBZONE_LABEL],
  ];
  return parts.some(Boolean) ? parts.map((part) => part ?? "").join("/") : "";
}
