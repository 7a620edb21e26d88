/** The endpoints of all services, from the objects that define them. */
import type { ConfigObject } from "#config/config-object.ts";
import type { ServiceEntry } from "#config/kinds/service-entry.ts";
import type { MeshConfig } from "#config/mesh-config.ts";
import type { Steps } from "#lib/async/steps.ts";
import { formatSpiffeId } from "#lib/pki/spiffe-id.ts";
import type { Endpoint, EndpointSet } from "#model/endpoint.ts";
import type { Features } from "#model/features.ts";
import type { Service, ServiceKey } from "#model/service.ts";
import { type DraftInput, entryDrafts, kubernetesDraft, type ServiceDraft } from "./drafts.ts";
import {
  joinedSlices,
  namespacesOf,
  type SliceObject,
  type SliceWorkload,
  serviceOfSlice,
  sliceEndpoints,
  sliceWorkloads,
} from "./endpoint-slices.ts";
import { kubernetesEndpoints, serviceEntryEndpoints } from "./endpoints.ts";
import type { FoundWorkloads } from "./found-workloads.ts";
import type { ServiceObject } from "./kubernetes-service.ts";
import { memoized } from "./memo.ts";
import type { PodFinder } from "./pods.ts";
import type { ServiceEntryObject } from "./service-entry.ts";
import { labelSet, type Surroundings, type Workload, type WorkloadFinder } from "./workloads.ts";

/** The endpoints of each service. Several objects may define one host in one namespace: it has the endpoints of all. */
export function* endpointSets(input: DraftInput, found: FoundWorkloads): Steps<Map<ServiceKey, EndpointSet>> {
  const sets = new Map<ServiceKey, EndpointSet>();
  const add = ({ key, set }: KeyedSet) => {
    const other = sets.get(key);
    sets.set(key, other === undefined ? set : joined(other, set));
  };
  const { nodes, mesh, features, byApiServer } = input;
  const { around, podsIn, find, findEntries } = found;
  const settings = settingsOf(around, nodes, mesh, features, byApiServer);
  const slicesOf = slicesByService(around, input.slices);
  for (const object of input.services) {
    const slices = slicesOf.get(nameOf(object)) ?? NO_SLICES;
    const pods = namespacesOfService(object, slices).map(podsIn);
    add(setOfService(object, slices, pods, byApiServer || slices.length > 0 ? findEntries : find, settings));
    yield;
  }
  for (const object of input.serviceEntries) {
    setsOfEntry(object, features.entriesSelectPods ? find : findEntries, settings).forEach(add);
    yield;
  }
  return sets;
}

interface KeyedSet {
  readonly key: ServiceKey;
  readonly set: EndpointSet;
}

/** What endpoints depend on beside the objects that define services and workloads. */
interface Settings extends Pick<DraftInput, "nodes" | "mesh" | "features" | "byApiServer"> {
  readonly around: Surroundings;
}

const settingsOf = memoized(
  (
    around: Surroundings,
    nodes: DraftInput["nodes"],
    mesh: MeshConfig,
    features: Features,
    byApiServer: boolean,
  ): Settings => ({ around, nodes, mesh, features, byApiServer }),
);

const NO_SLICES: readonly SliceObject[] = [];

const nameOf = memoized(({ metadata }: ServiceObject) => `${metadata.namespace}/${metadata.name}`);
const slicesByService = memoized((_: Surroundings, slices: readonly SliceObject[]) =>
  Map.groupBy(slices, serviceOfSlice),
);
const namespacesOfService = memoized((_: ServiceObject, slices: readonly SliceObject[]) => namespacesOf(slices));

/** The pods are those of the namespaces of its slices: a change of others makes no difference, and nothing is looked at. */
const setOfService = memoized(
  (
    object: ServiceObject,
    slices: readonly SliceObject[],
    pods: readonly (PodFinder | undefined)[],
    find: WorkloadFinder,
    settings: Settings,
  ): KeyedSet => {
    const { features, mesh, around } = settings;
    const { key, service } = kubernetesDraft(object, settings);
    const namespaces = namespacesOfService(object, slices);
    const podsIn = (namespace: string) => pods[namespaces.indexOf(namespace)];
    const both = features.dualStack && service.addresses.length > 1;
    const listed = slices.map((slice) =>
      endpointsOfSlice(slice, sliceWorkloads(slice, podsIn), service.session !== undefined, both, around),
    );
    const selected = mayHaveEntries(service, settings) ? find(serviceSelector(object)) : NO_WORKLOADS;
    return { key, set: kubernetesSet(object, listed, selected, features.drainingLabel, mesh.trustDomain) };
  },
);

const setsOfEntry = memoized(
  (object: ServiceEntryObject, find: WorkloadFinder, settings: Settings): readonly KeyedSet[] => {
    const { features, mesh, around } = settings;
    const selected = find(entrySelector(object));
    return entryDrafts(object, settings).map((draft) => ({
      key: draft.key,
      set: entrySet(draft, object, selected, around, features.drainingLabel, mesh.trustDomain),
    }));
  },
);

/** Headless services have pods alone. Without an API server, these are found as entries are. */
function mayHaveEntries({ headless }: Service, { features, byApiServer }: Settings): boolean {
  return !byApiServer || (features.servicesSelectEntries && !headless);
}

const NO_WORKLOADS: readonly Workload[] = [];

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
