/** The endpoints of all services, from the objects that define them. */

import type { ServiceEntry } from "#config/kinds/service-entry/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { ITEMS_PER_STEP, type Steps } from "#lib/async/steps.ts";
import { listChanges } from "#lib/collections/list-changes.ts";
import { formatSpiffeId } from "#lib/pki/spiffe-id.ts";
import type { Features } from "#model/features.ts";
import type { Endpoint, EndpointSet } from "#model/service/endpoint.ts";
import type { Service, ServiceKey } from "#model/service/service.ts";
import { isSame, memoized } from "../identity/memo.ts";
import { type DraftInput, entryDrafts, kubernetesDraft, type ServiceDraft } from "../services/drafts.ts";
import type { ServiceObject } from "../services/kubernetes-service.ts";
import type { ServiceEntryObject } from "../services/service-entry.ts";
import type { PodFinder } from "../workloads/pods.ts";
import { labelSet, type Surroundings, type Workload, type WorkloadFinder } from "../workloads/workloads.ts";
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

/** The endpoints of each service. Several objects may define one host in one namespace: it has the endpoints of all. */
export function* endpointSets(input: DraftInput, found: FoundWorkloads): Steps<ReadonlyMap<ServiceKey, EndpointSet>> {
  const { around, podsIn, find, findEntries } = found;
  const { services, serviceEntries, slices, nodes, mesh, features, byApiServer } = input;
  const settings = settingsOf(around, nodes, mesh, features, byApiServer);
  const from = { services, serviceEntries, podsIn, find, findEntries, settings };
  const last = lastSets.get(around);
  const known = (last && (yield* afterFew(last, from, slices))) ?? (yield* allSets(from, slices));
  lastSets.set(around, { from, slices, ...known });
  return known.sets;
}

/** What sets are made from beside slices, of which one changes whenever a pod does. */
interface SetsFrom extends Pick<DraftInput, "services" | "serviceEntries">, Omit<FoundWorkloads, "around" | "known"> {
  readonly settings: Settings;
}

interface FoundSets {
  readonly sets: ReadonlyMap<ServiceKey, EndpointSet>;
  /** By the name of the service, for those that have one. */
  readonly slicesOf: ReadonlyMap<string | undefined, readonly SliceObject[]>;
  /** Of hosts that several objects define. */
  readonly joined: ReadonlySet<ServiceKey>;
}

interface LastSets extends FoundSets {
  readonly from: SetsFrom;
  readonly slices: readonly SliceObject[];
}

const lastSets = new WeakMap<Surroundings, LastSets>();

function* allSets(from: SetsFrom, slices: readonly SliceObject[]): Steps<FoundSets> {
  const sets = new Map<ServiceKey, EndpointSet>();
  const joinedKeys = new Set<ServiceKey>();
  const add = ({ key, set }: KeyedSet) => {
    const other = sets.get(key);
    if (other !== undefined) joinedKeys.add(key);
    sets.set(key, other === undefined ? set : joined(other, set));
  };
  const slicesOf = Map.groupBy(slices, serviceOfSlice);
  let count = 0;
  for (const object of from.services) {
    if (count++ % ITEMS_PER_STEP === 0) yield;
    add(setOf(object, slicesOf.get(nameOf(object)) ?? NO_SLICES, from));
  }
  for (const object of from.serviceEntries) {
    if (count++ % ITEMS_PER_STEP === 0) yield;
    setsOf(object, from).forEach(add);
  }
  return { sets, slicesOf, joined: joinedKeys };
}

/**
 * Where nothing changed but slices, and entries of hosts that they had before, only services that have these are looked at.
 * Undefined where that does not tell it all.
 */
function* afterFew(last: LastSets, from: SetsFrom, slices: readonly SliceObject[]): Steps<FoundSets | undefined> {
  const { serviceEntries } = from;
  if (!isSameRecord({ ...last.from, serviceEntries }, from)) return undefined;
  const { removed, added } = listChanges(last.slices, slices);
  const entries = listChanges(last.from.serviceEntries, serviceEntries);
  const touched = new Set([...removed, ...added].map(serviceOfSlice));
  if (touched.size + entries.removed.length > FEW_SERVICES) return undefined;
  yield;
  const slicesOf = new Map(last.slicesOf);
  const sets = new Map(last.sets);
  for (const name of touched) {
    const left = new Set(last.slicesOf.get(name)).difference(new Set(removed));
    const own = [...left, ...added.filter((slice) => serviceOfSlice(slice) === name)];
    // In the order that all of them are in.
    slicesOf.set(name, own.length < 2 ? own : slices.filter((slice) => own.includes(slice)));
    const object = name === undefined ? undefined : servicesByName(from.settings.around, from.services).get(name);
    if (object === undefined) continue;
    const { key, set } = setOf(object, slicesOf.get(name) ?? NO_SLICES, from);
    if (last.joined.has(key)) return undefined;
    sets.set(key, set);
  }
  const hosts = new Set(entries.removed.flatMap((object) => setsOf(object, from)).map(({ key }) => key));
  for (const { key, set } of entries.added.flatMap((object) => setsOf(object, from))) {
    if (last.joined.has(key) || !hosts.delete(key)) return undefined;
    sets.set(key, set);
  }
  return hosts.size > 0 ? undefined : { sets, slicesOf, joined: last.joined };
}

/** For more than that it is better to look at all. */
const FEW_SERVICES = 16;

function isSameRecord<T extends object>(a: T, b: T): boolean {
  return (Object.keys(a) as (keyof T)[]).every((key) => isSame(a[key], b[key]));
}

function setOf(object: ServiceObject, slices: readonly SliceObject[], from: SetsFrom): KeyedSet {
  const { podsIn, find, findEntries, settings } = from;
  const pods = namespacesOfService(object, slices).map(podsIn);
  return setOfService(object, slices, pods, settings.byApiServer || slices.length > 0 ? findEntries : find, settings);
}

function setsOf(object: ServiceEntryObject, { find, findEntries, settings }: SetsFrom): readonly KeyedSet[] {
  return setsOfEntry(object, settings.features.entriesSelectPods ? find : findEntries, settings);
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
const servicesByName = memoized(
  (_: Surroundings, services: readonly ServiceObject[]) => new Map(services.map((object) => [nameOf(object), object])),
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
