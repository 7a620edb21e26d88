/** Labels that say where nodes and workloads are. */

export const REGION_LABEL = "topology.kubernetes.io/region";
export const ZONE_LABEL = "topology.kubernetes.io/zone";
/** What the first two were called before; nodes may still have them. */
export const OLD_REGION_LABEL = "failure-domain.beta.kubernetes.io/region";
export const OLD_ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone";
export const SUBZONE_LABEL = "topology.istio.io/subzone";
/** The cluster of a workload. */
export const CLUSTER_LABEL = "topology.istio.io/cluster";
/** The network of a workload, or of everything in a cluster. */
export const NETWORK_LABEL = "topology.istio.io/network";
/** The node that a workload runs on. */
export const HOSTNAME_LABEL = "kubernetes.io/hostname";

/** What a locality is made of, from the largest. */
export const LOCALITY_PARTS: readonly string[] = [REGION_LABEL, ZONE_LABEL, SUBZONE_LABEL];
/** States a whole locality. */
export const LOCALITY_LABEL = "istio-locality";
/** States it too, and counts more. */
const TOPOLOGY_LABEL = "topology.istio.io/locality";

/** The whole locality that labels state, as it is written there; empty where they state none. */
export function statedLocality(labels: Readonly<Record<string, string>>): string {
  return labels[TOPOLOGY_LABEL] ?? labels[LOCALITY_LABEL] ?? "";
}
