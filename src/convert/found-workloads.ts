/** The workloads of a cluster, by which endpoints are found. */
import type { ConfigObject } from "#config/config-object.ts";
import type { WorkloadEntry } from "#config/kinds/workload-entry.ts";
import type { MeshNetworks } from "#config/mesh/mesh-networks.ts";
import type { Steps } from "#lib/async/steps.ts";
import type { Features } from "#model/features.ts";
import type { DraftInput } from "./drafts.ts";
import { type NamedWorkload, namedEntry, namedPod, placedPod } from "./known-workloads.ts";
import { NETWORK_LABEL } from "./locality.ts";
import { hasSameItems, memoized } from "./memo.ts";
import { networkFinder } from "./networks.ts";
import { type PodFinder, type PodWorkload, podFinder, podWorkload } from "./pods.ts";
import {
  type IndexedWorkload,
  isHealthy,
  labelSet,
  type Surroundings,
  type WorkloadFinder,
  workloadFinder,
  workloadOf,
} from "./workloads.ts";

/** The workloads of a cluster. */
export interface FoundWorkloads {
  readonly around: Surroundings;
  readonly pods: PodFinder;
  /** All of them, whether or not they take requests. */
  readonly known: readonly NamedWorkload[];
  /** Among all that take requests. */
  readonly find: WorkloadFinder;
  /** Among those that are no pods. */
  readonly findEntries: WorkloadFinder;
}

/** The workloads that objects describe: pods, and entries that are well. */
export function* foundWorkloads(input: DraftInput): Steps<FoundWorkloads> {
  const { features, mesh, isRemote = false } = input;
  const around = surroundings(features, systemNetwork(input), mesh.networks ?? NO_NETWORKS, isRemote);
  const entries: IndexedWorkload[] = [];
  for (const object of input.workloadEntries) {
    if (!features.entryHealth || isHealthy(object)) entries.push(indexedEntry(object, around));
    yield;
  }
  const { pods, finder, named } = yield* podsAround(around, input);
  const findEntries = workloadFinder(entries);
  yield;
  // Mostly slices name the pods, and nobody looks for them.
  let findAll: WorkloadFinder | undefined = pods.length === 0 ? findEntries : undefined;
  const find: WorkloadFinder = (selector) => {
    if (selector.places.length === 0) return [];
    findAll ??= workloadFinder([...entries, ...pods.filter(({ ready }) => ready).map((pod) => indexedPod(pod))]);
    return findAll(selector);
  };
  const known =
    entries.length === 0 ? named : [...entries.map((entry) => namedEntry(entry, input.byApiServer)), ...named];
  return { around, pods: finder, known, find, findEntries };
}

interface FoundPods {
  readonly pods: readonly PodWorkload[];
  readonly finder: PodFinder;
  readonly named: readonly NamedWorkload[];
}

const lastPods = new WeakMap<Surroundings, FoundPods & { readonly from: Pick<DraftInput, "pods" | "nodes"> }>();

/** The same as the last time when neither pods nor nodes have changed. */
function* podsAround(around: Surroundings, from: Pick<DraftInput, "pods" | "nodes" | "features">): Steps<FoundPods> {
  const last = lastPods.get(around);
  if (last && hasSameItems(last.from.pods, from.pods) && hasSameItems(last.from.nodes, from.nodes)) return last;
  const nodes = new Map(from.nodes.map((node) => [node.metadata.name, node]));
  const pods: PodWorkload[] = [];
  for (const pod of from.pods) {
    pods.push(workloadOfPod(pod, nodes.get(pod.spec.nodeName ?? ""), around));
    yield;
  }
  const placed = from.features.podsByAddress ? pods.flatMap((pod) => placedPod(pod) ?? []) : [];
  const named = [...pods.map((pod) => namedPod(pod)), ...placed];
  const found = { pods, finder: podFinder(pods), named, from: { pods: from.pods, nodes: from.nodes } };
  lastPods.set(around, found);
  return found;
}

/** The network that everything of the cluster is in unless it says otherwise: a label of the control plane's namespace. */
function systemNetwork({ namespaces, mesh }: DraftInput): string {
  const system = namespaces.find(({ metadata }) => metadata.name === mesh.rootNamespace);
  return system?.metadata.labels[NETWORK_LABEL] ?? "";
}

const surroundings = memoized(
  ({ clusterId }: Features, network: string, networks: MeshNetworks, isRemote: boolean): Surroundings => {
    const networkOf = networkFinder(network, networks, clusterId);
    return { clusterId, networkOf, networkOfEntry: isRemote ? networkOf : () => "" };
  },
);

const NO_NETWORKS: MeshNetworks = {};

const workloadOfPod = memoized(podWorkload);

const indexedEntry = memoized((object: ConfigObject<WorkloadEntry>, around: Surroundings): IndexedWorkload => {
  const workload = workloadOf(object, around);
  return { workload, ...labelSet(workload.namespace, workload.labels) };
});

const indexedPod = memoized(
  ({ workload }: PodWorkload): IndexedWorkload => ({ workload, ...labelSet(workload.namespace, workload.labels) }),
);
