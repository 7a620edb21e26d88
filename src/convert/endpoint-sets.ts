/** The endpoints of all services, from the objects that define them. */
import type { ConfigObject } from "#config/config-object.ts";
import type { ServiceEntry } from "#config/kinds/service-entry.ts";
import type { WorkloadEntry } from "#config/kinds/workload-entry.ts";
import type { MeshNetworks } from "#config/mesh/mesh-networks.ts";
import type { Steps } from "#lib/async/steps.ts";
import { formatSpiffeId } from "#lib/pki/spiffe-id.ts";
import type { Endpoint, EndpointSet } from "#model/endpoint.ts";
import type { Features } from "#model/features.ts";
import type { Service, ServiceKey } from "#model/service.ts";
import { type DraftInput, entryDrafts, kubernetesDraft, type ServiceDraft } from "./drafts.ts";
import {
  joinedSlices,
  type SliceObject,
  type SliceWorkload,
  serviceOfSlice,
  sliceEndpoints,
  sliceWorkloads,
} from "./endpoint-slices.ts";
import { kubernetesEndpoints, serviceEntryEndpoints } from "./endpoints.ts";
import { type NamedWorkload, namedEntry, namedPod, placedPod } from "./known-workloads.ts";
import type { ServiceObject } from "./kubernetes-service.ts";
import { NETWORK_LABEL } from "./locality.ts";
import { hasSameItems, isSame, memoized } from "./memo.ts";
import { networkFinder } from "./networks.ts";
import { type PodFinder, type PodWorkload, podFinder, podWorkload } from "./pods.ts";
import type { ServiceEntryObject } from "./service-entry.ts";
import {
  type IndexedWorkload,
  isHealthy,
  labelSet,
  type Surroundings,
  type Workload,
  type WorkloadFinder,
  workloadFinder,
  workloadOf,
} from "./workloads.ts";

/** The endpoints of each service. Several objects may define one host in one namespace: it has the endpoints of all. */
export function* endpointSets(input: DraftInput, found: FoundWorkloads): Steps<Map<ServiceKey, EndpointSet>> {
  const sets = new Map<ServiceKey, EndpointSet>();
  const add = ({ key, set }: KeyedSet) => {
    const other = sets.get(key);
    sets.set(key, other === undefined ? set : joined(other, set));
  };
  const slices = Map.groupBy(input.slices, serviceOfSlice);
  const beyond = beyondSlices(input, found);
  for (const object of input.services) {
    add(setOfService(object, slices.get(`${object.metadata.namespace}/${object.metadata.name}`) ?? NO_SLICES, beyond));
    yield;
  }
  for (const object of input.serviceEntries) {
    setsOfEntry(object, beyond).forEach(add);
    yield;
  }
  return sets;
}

interface KeyedSet {
  readonly key: ServiceKey;
  readonly set: EndpointSet;
}

/** All that the endpoints of an object depend on, beside its slices. */
interface BeyondSlices {
  readonly input: Omit<DraftInput, "slices">;
  readonly found: FoundWorkloads;
}

const NO_SLICES: readonly SliceObject[] = [];

const lastBeyond = new WeakMap<Surroundings, BeyondSlices>();

/** Those of the last time when nothing but slices has changed, as it is mostly: then nothing else has to be looked at. */
function beyondSlices({ slices: _, ...input }: DraftInput, found: FoundWorkloads): BeyondSlices {
  const last = lastBeyond.get(found.around);
  const before: unknown[] = Object.values(last?.input ?? {});
  if (last !== undefined && Object.values(input).every((one, i) => isSame(one, before[i]))) return last;
  const beyond = { input, found };
  lastBeyond.set(found.around, beyond);
  return beyond;
}

const setOfService = memoized(
  (object: ServiceObject, slices: readonly SliceObject[], { input, found }: BeyondSlices): KeyedSet => {
    const { key, service } = kubernetesDraft(object, input);
    return { key, set: endpointsOfService(object, service, { input, found, slices }) };
  },
);

const setsOfEntry = memoized((object: ServiceEntryObject, { input, found }: BeyondSlices): readonly KeyedSet[] => {
  const { features, mesh } = input;
  const selected = (features.entriesSelectPods ? found.find : found.findEntries)(entrySelector(object));
  return entryDrafts(object, input).map((draft) => ({
    key: draft.key,
    set: entrySet(draft, object, selected, found.around, features.drainingLabel, mesh.trustDomain),
  }));
});

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

function endpointsOfService(
  object: ServiceObject,
  service: Service,
  { input, found, slices }: BeyondSlices & { readonly slices: readonly SliceObject[] },
): EndpointSet {
  const both = input.features.dualStack && service.addresses.length > 1;
  const listed = slices.map((slice) =>
    endpointsOfSlice(slice, sliceWorkloads(slice, found.pods), service.session !== undefined, both, found.around),
  );
  const find = input.byApiServer || slices.length > 0 ? found.findEntries : found.find;
  const selected = mayHaveEntries(service, input) ? find(serviceSelector(object)) : NO_WORKLOADS;
  return kubernetesSet(object, listed, selected, input.features.drainingLabel, input.mesh.trustDomain);
}

/** Headless services have pods alone. Without an API server, these are found as entries are. */
function mayHaveEntries({ headless }: Service, { features, byApiServer }: BeyondSlices["input"]): boolean {
  return !byApiServer || (features.servicesSelectEntries && !headless);
}

const NO_WORKLOADS: readonly Workload[] = [];

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

const endpointsOfSlice = memoized(
  (
    slice: SliceObject,
    workloads: readonly SliceWorkload[],
    sessions: boolean,
    bothFamilies: boolean,
    around: Surroundings,
  ): readonly Endpoint[] => sliceEndpoints(slice, workloads, { keepsSessions: sessions, bothFamilies, around }),
);

const kubernetesSet = memoized(
  (
    { spec }: ServiceObject,
    listed: readonly (readonly Endpoint[])[],
    selected: readonly Workload[],
    drainingLabel: string,
    trustDomain: string,
  ): EndpointSet => {
    const endpoints = [...joinedSlices(listed), ...kubernetesEndpoints(spec, selected)];
    return endpointSet(drained(endpoints, drainingLabel), trustDomain);
  },
);

const entrySet = memoized(
  (
    { service }: ServiceDraft,
    object: ConfigObject<ServiceEntry>,
    selected: readonly Workload[],
    around: Surroundings,
    drainingLabel: string,
    trustDomain: string,
  ): EndpointSet => {
    const endpoints = serviceEntryEndpoints(object, service, { selected, around });
    return endpointSet(drained(endpoints, drainingLabel), trustDomain);
  },
);

/** Workloads that are labelled so finish what they have begun, and get nothing new. */
function drained(endpoints: readonly Endpoint[], label: string): readonly Endpoint[] {
  return endpoints.map((endpoint) =>
    (endpoint.labels[label] ?? "") === "" ? endpoint : { ...endpoint, drains: true },
  );
}

const indexedEntry = memoized((object: ConfigObject<WorkloadEntry>, around: Surroundings): IndexedWorkload => {
  const workload = workloadOf(object, around);
  return { workload, ...labelSet(workload.namespace, workload.labels) };
});

const indexedPod = memoized(
  ({ workload }: PodWorkload): IndexedWorkload => ({ workload, ...labelSet(workload.namespace, workload.labels) }),
);

const serviceSelector = memoized(({ metadata, spec }: ServiceObject) => labelSet(metadata.namespace, spec.selector));

const entrySelector = memoized(({ metadata, spec }: ConfigObject<ServiceEntry>) =>
  labelSet(metadata.namespace, spec.workloadSelector?.labels),
);

function endpointSet(endpoints: readonly Endpoint[], trustDomain: string): EndpointSet {
  const identities = endpoints
    .filter(({ serviceAccount }) => serviceAccount !== "")
    .map(({ namespace, serviceAccount }) => formatSpiffeId({ trustDomain, namespace, serviceAccount }));
  return { endpoints, identities: [...new Set(identities)].sort() };
}

/** One set with the endpoints of all; the same as before when these are. */
export const joinedSets = memoized(
  (first: EndpointSet, others: readonly EndpointSet[]): EndpointSet => others.reduce(joined, first),
);

function joined(a: EndpointSet, b: EndpointSet): EndpointSet {
  return {
    endpoints: [...a.endpoints, ...b.endpoints],
    identities: [...new Set([...a.identities, ...b.identities])].sort(),
  };
}
