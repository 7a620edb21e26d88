/** Labels that a workload has because of where it is. */
import {
  CLUSTER_LABEL,
  HOSTNAME_LABEL,
  NETWORK_LABEL,
  REGION_LABEL,
  SUBZONE_LABEL,
  ZONE_LABEL,
} from "#config/terms/topology-labels.ts";
import type { Labels } from "../labels/labels.ts";
import type { Locality } from "./endpoint.ts";

/** Where a workload is; empty texts where it is not known. */
export interface Whereabouts {
  readonly clusterId: string;
  readonly locality: Locality;
  readonly nodeName: string;
  readonly network: string;
}

/**
 * The labels of a workload with those that say where it is: subsets and failover may be defined by them. Callers and endpoints
 * are compared by these, so both have them from here.
 */
export function locatedLabels(labels: Labels, { clusterId, locality, nodeName, network }: Whereabouts): Labels {
  const [region, zone, subzone] = locality.split("/");
  return {
    ...labels,
    ...(region && { [REGION_LABEL]: region }),
    ...(zone && { [ZONE_LABEL]: zone }),
    ...(subzone && { [SUBZONE_LABEL]: subzone }),
    ...(clusterId && { [CLUSTER_LABEL]: clusterId }),
    ...(nodeName && { [HOSTNAME_LABEL]: nodeName }),
    ...(network && !labels[NETWORK_LABEL] && { [NETWORK_LABEL]: network }),
  };
}
