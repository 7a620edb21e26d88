/** Labels that say where nodes and workloads are. */

export const REGION_LABEL = "topology.kubernetes.io/region";
export const ZONE_LABEL = "topology.kubernetes.io/zone";
export const SUBZONE_LABEL = "topology.istio.io/subzone";
/** The cluster of a workload. */
export const CLUSTER_LABEL = "topology.istio.io/cluster";
/** The network of a workload, or of everything in a cluster. */
export const NETWORK_LABEL = "topology.istio.io/network";
/** The node that a workload runs on. */
export const HOSTNAME_LABEL = "kubernetes.io/hostname";

/** What a locality is made of, from the largest. */
export const LOCALITY_PARTS: readonly string[] = [REGION_LABEL, ZONE_LABEL, SUBZONE_LABEL];
/** State a whole locality; the first of them counts. */
export const LOCALITY_LABELS: readonly string[] = ["topology.istio.io/locality", "istio-locality"];
