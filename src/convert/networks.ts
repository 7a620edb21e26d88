/** Which network an address belongs to. */
import { NETWORK_LABEL } from "./locality.ts";

/** The network of a workload by its address and labels; empty where nobody said. */
export type NetworkOf = (address: string, labels: Readonly<Record<string, string>>) => string;

/** Finds networks: the workload's own label decides, else the one of the namespace that the control plane is in. */
export function networkFinder(systemNetwork: string): NetworkOf {
  return (_address, labels) => labels[NETWORK_LABEL] || systemNetwork;
}
