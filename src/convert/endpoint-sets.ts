/** The endpoints of all services, from the objects that define them. */
import type { ConfigObject } from "#config/config-object.ts";
import type { ServiceEntry } from "#config/kinds/service-entry.ts";
import type { Steps } from "#lib/async/steps.ts";
import { formatSpiffeId } from "#lib/pki/spiffe-id.ts";
import type { Endpoint, EndpointSet } from "#model/endpoint.ts";
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
import type { FoundWorkloads } from "./found-workloads.ts";
import type { ServiceObject } from "./kubernetes-service.ts";
import { isSame, memoized } from "./memo.ts";
import type { ServiceEntryObject } from "./service-entry.ts";
import { labelSet, type Surroundings, type Workload } from "./workloads.ts";

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
