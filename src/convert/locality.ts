/** Where workloads are, and what their labels say about it. */
import type { ConfigObject } from "#config/config-object.ts";
import type { Locality } from "#model/endpoint.ts";

type Labels = Readonly<Record<string, string>>;

const REGION = "topology.kubernetes.io/region";
const ZONE = "topology.kubernetes.io/zone";
const SUBZONE = "topology.istio.io/subzone";
const OLD_REGION = "failure-domain.beta.kubernetes.io/region";
const OLD_ZONE = "failure-domain.beta.kubernetes.io/zone";
const LOCALITY_LABELS = ["topology.istio.io/locality", "istio-locality"];
const CLUSTER = "topology.istio.io/cluster";
const HOSTNAME = "kubernetes.io/hostname";
/** Says in which network a workload, or everything of a cluster, is. */
export const NETWORK_LABEL = "topology.istio.io/network";

/** The locality that labels of a workload state; a label cannot hold slashes, so dots stand for them. */
export function labelledLocality(labels: Labels): Locality {
  const label = LOCALITY_LABELS.map((name) => labels[name]).find((value) => value !== undefined) ?? "";
  return label.includes("/") ? label : label.replaceAll(".", "/");
}

/** The locality of what runs on a node. */
export function nodeLocality(node: ConfigObject | undefined): Locality {
  const labels = node?.metadata.labels ?? {};
  const parts = [labels[REGION] || labels[OLD_REGION], labels[ZONE] || labels[OLD_ZONE], labels[SUBZONE]];
  return parts.some(Boolean) ? parts.map((part) => part ?? "").join("/") : "";
}

/** Where a workload is, beyond its locality. */
export interface Whereabouts {
  readonly clusterId: string;
  readonly locality: Locality;
  readonly nodeName: string;
  readonly network: string;
}

/** The labels of a workload with those that say where it is: subsets and failover may be defined by them. */
export function locatedLabels(labels: Labels, { clusterId, locality, nodeName, network }: Whereabouts): Labels {
  const [region, zone, subzone] = locality.split("/");
  return {
    ...labels,
    ...(region && { [REGION]: region }),
    ...(zone && { [ZONE]: zone }),
    ...(subzone && { [SUBZONE]: subzone }),
    ...(clusterId && { [CLUSTER]: clusterId }),
    ...(nodeName && { [HOSTNAME]: nodeName }),
    ...(network && !labels[NETWORK_LABEL] && { [NETWORK_LABEL]: network }),
  };
}
