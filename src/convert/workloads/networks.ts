/** Which network an address belongs to. */
import { BlockList, isIPv4 } from "node:net";
import type { MeshNetworks } from "#config/mesh/mesh-networks.ts";
import { NETWORK_LABEL } from "#config/terms/topology-labels.ts";

/** The network of a workload by its address and labels; empty where nobody said. */
export type NetworkOf = (address: string, labels: Readonly<Record<string, string>>) => string;

/**
 * Finds networks: the workload's own label decides, else the one of the namespace that the control plane is in, else the
 * networks of the mesh, by the whole cluster or by address.
 */
export function networkFinder(systemNetwork: string, networks: MeshNetworks, clusterId: string): NetworkOf {
  const names = Object.keys(networks).sort();
  const ofCluster = names.find((name) =>
    networks[name]?.endpoints?.some(({ fromRegistry }) => fromRegistry === clusterId),
  );
  const ranges = names.flatMap((name) =>
    (networks[name]?.endpoints ?? []).flatMap(({ fromCidr }) => (fromCidr ? [range(name, fromCidr)] : [])),
  );
  // An address in several ranges is in the widest.
  ranges.sort((a, b) => a.bits - b.bits);
  return (address, labels) => {
    const known = labels[NETWORK_LABEL] || systemNetwork || ofCluster;
    return known || (ranges.find(({ contains }) => contains(address))?.network ?? "");
  };
}

interface Range {
  readonly network: string;
  readonly bits: number;
  readonly contains: (address: string) => boolean;
}

function range(network: string, cidr: string): Range {
  const [first = "", length] = cidr.split("/");
  const family = isIPv4(first) ? "ipv4" : "ipv6";
  const bits = length === undefined ? (family === "ipv4" ? 32 : 128) : Number(length);
  const list = new BlockList();
  list.addSubnet(first, bits, family);
  return { network, bits, contains: (address) => list.check(address, isIPv4(address) ? "ipv4" : "ipv6") };
}
