/** The workloads of a cluster, by which endpoints are found. */

import type { WorkloadEntry } from "#config/kinds/workload-entry/schema.ts";
import type { MeshNetworks } from "#config/mesh/mesh-networks.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { NETWORK_LABEL } from "#config/terms/topology-labels.ts";
import type { Steps } from "#lib/async/steps.ts";
import { hasSameItems } from "#lib/collections/same-items.ts";
import type { Features } from "#model/features.ts";
import { type Mapped, mappedAfter, memoized } from "../identity/memo.ts";
import type { DraftInput } from "../services/drafts.ts";
import { type NamedWorkload, namedEntry, namedPod, placedPod } from "../workloads/known-workloads.ts";
import { networkFinder } from "../workloads/networks.ts";
import { type PodFinder, type PodObject, type PodWorkload, podFinder, podWorkload } from "../workloads/pods.ts";
import {
  type IndexedWorkload,
  isHealthy,
  labelSet,
  type Surroundings,
  type WorkloadFinder,
  workloadFinder,
  workloadOf,
} from "../workloads/workloads.ts";
import type { PodsIn } from "./endpoint-slices.ts";

/** The workloads of a cluster. Finders are the same as before as long as all among which they find are. */
export interface FoundWorkloads {
  readonly around: Surroundings;
  readonly podsIn: PodsIn;
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
  const { pods, podsIn, named } = yield* podsAround(around, input);
  const findEntries = entryFinder(around, entries);
  yield;
  const known =
    entries.length === 0 ? named : [...entries.map((entry) => namedEntry(entry, input.byApiServer)), ...named];
  return { around, podsIn, known, find: finderOfAll(around, entries, pods), findEntries };
}

const entryFinder = memoized((_: Surroundings, entries: readonly IndexedWorkload[]) => workloadFinder(entries));

/** Mostly slices name the pods, and nobody looks for them. */
const finderOfAll = memoized(
  (_: Surroundings, entries: readonly IndexedWorkload[], pods: readonly PodWorkload[]): WorkloadFinder => {
    let find: WorkloadFinder | undefined;
    return (selector) => {
      if (selector.places.length === 0) return [];
      find ??= workloadFinder([...entries, ...pods.filter(({ ready }) => ready).map((pod) => indexedPod(pod))]);
      return find(selector);
    };
  },
);

interface FoundPods {
  readonly pods: readonly PodWorkload[];
  readonly podsIn: PodsIn;
  readonly named: readonly NamedWorkload[];
}

interface LastPods extends FoundPods {
  readonly nodes: DraftInput["nodes"];
  readonly each: Mapped<PodObject, FoundPod>;
  readonly finders: ReadonlyMap<string, NamespacePods>;
}

/** A pod, and the names under which it is known. */
interface FoundPod {
  readonly pod: PodWorkload;
  readonly names: readonly NamedWorkload[];
}

interface NamespacePods {
  readonly pods: readonly PodWorkload[];
  readonly finder: PodFinder;
}

const lastPods = new WeakMap<Surroundings, LastPods>();
const NO_PODS: LastPods["each"] = { items: [], values: [] };

/** The same as the last time when neither pods nor nodes have changed; most pods are those of before in any case. */
function* podsAround(around: Surroundings, from: Pick<DraftInput, "pods" | "nodes" | "features">): Steps<FoundPods> {
  const last = lastPods.get(around);
  const before = last && hasSameItems(last.nodes, from.nodes) ? last : undefined;
  if (before && hasSameItems(before.each.items, from.pods)) return before;
  const nodes = new Map(from.nodes.map((node) => [node.metadata.name, node]));
  const values = yield* mappedAfter(before?.each ?? NO_PODS, from.pods, (object): FoundPod => {
    const pod = workloadOfPod(object, nodes.get(object.spec.nodeName ?? ""), around);
    const placed = from.features.podsByAddress ? placedPod(pod) : undefined;
    return { pod, names: placed === undefined ? [namedPod(pod)] : [namedPod(pod), placed] };
  });
  const pods = values.map(({ pod }) => pod);
  const finders = findersOf(pods, last?.finders);
  const podsIn: PodsIn = (namespace) => finders.get(namespace)?.finder;
  const found = { pods, podsIn, named: values.flatMap(({ names }) => names) };
  lastPods.set(around, { ...found, nodes: from.nodes, each: { items: from.pods, values }, finders });
  return found;
}

/** Of each namespace; those of before for the same pods. */
function findersOf(pods: readonly PodWorkload[], last: LastPods["finders"] | undefined): LastPods["finders"] {
  const finders = new Map<string, NamespacePods>();
  for (const [namespace, own] of Map.groupBy(pods, ({ workload }) => workload.namespace)) {
    const before = last?.get(namespace);
    const isKept = before !== undefined && hasSameItems(before.pods, own);
    finders.set(namespace, isKept ? before : { pods: own, finder: podFinder(own) });
  }
  return finders;
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
