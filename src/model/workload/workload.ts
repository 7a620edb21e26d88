/** Workloads that registries know, whether or not a service leads to them. */

/** What a registry says of a workload that a proxy may stand beside. */
export interface KnownWorkload {
  /** Without an API server, what stands in for a pod is a WorkloadEntry: with one, that is a machine beside the pods. */
  readonly kind: "pod" | "stand-in" | "machine";
  /** With those that say where it is. */
  readonly labels: Readonly<Record<string, string>>;
  /** Its ports by the names it gives them; those of pods as `podPortName` has them. */
  readonly ports: Readonly<Record<string, number>>;
}

/** Of a pod by its cluster and name, or of a WorkloadEntry, or a pod, by its cluster and address. */
export type WorkloadKey = `${KeyKind} ${string}/${string}/${string}`;

type KeyKind = "pod" | "pod-at" | "entry";

/** Where a pod, or a WorkloadEntry or pod at an address, is found among known workloads. */
export function workloadKey(
  kind: KeyKind,
  { clusterId, namespace, name }: { readonly clusterId: string; readonly namespace: string; readonly name: string },
): WorkloadKey {
  return `${kind} ${clusterId}/${namespace}/${name}`;
}
