/** Where workloads are, and what their labels say about it. */
import type { ConfigObject } from "#config/config-object.ts";
import { LOCALITY_LABELS, REGION_LABEL, SUBZONE_LABEL, ZONE_LABEL } from "#config/topology-labels.ts";
import type { Locality } from "#model/endpoint.ts";

type Labels = Readonly<Record<string, string>>;

const OLD_REGION = "failure-domain.beta.kubernetes.io/region";
const OLD_ZONE = "failure-domain.beta.kubernetes.io/zone";

/** The locality that labels of a workload state; a label cannot hold slashes, so dots stand for them. */
export function labelledLocality(labels: Labels): Locality {
  const label = LOCALITY_LABELS.map((name) => labels[name]).find((value) => value !== undefined) ?? "";
  return label.includes("/") ? label : label.replaceAll(".", "/");
}

/** The locality of what runs on a node. */
export function nodeLocality(node: ConfigObject | undefined): Locality {
  const labels = node?.metadata.labels ?? {};
  const parts = [
    labels[REGION_LABEL] || labels[OLD_REGION],
    labels[ZONE_LABEL] || labels[OLD_ZONE],
    labels[SUBZONE_LABEL],
  ];
  return parts.some(Boolean) ? parts.map((part) => part ?? "").join("/") : "";
}
