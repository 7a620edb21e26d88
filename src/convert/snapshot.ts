/**
 * Checked objects to the state of the mesh. What is derived from objects that did not change is the same as the last time,
 * and what turns out equal to the previous snapshot is kept too, so whoever compares identities sees what an event touched.
 */

import { authorizationPolicyKind } from "#config/kinds/authorization-policy/kind.ts";
import { configMapKind } from "#config/kinds/config-map/kind.ts";
import { destinationRuleKind } from "#config/kinds/destination-rule/kind.ts";
import { endpointSliceKind } from "#config/kinds/endpoint-slice/kind.ts";
import type { EndpointSlice } from "#config/kinds/endpoint-slice/schema.ts";
import { envoyFilterKind } from "#config/kinds/envoy-filter/kind.ts";
import { gatewayKind } from "#config/kinds/gateway/kind.ts";
import { ingressKind } from "#config/kinds/ingress/kind.ts";
import { ingressClassKind } from "#config/kinds/ingress-class/kind.ts";
import { isOfKind, objectsOfKind } from "#config/kinds/kind.ts";
import { namespaceKind } from "#config/kinds/namespace/kind.ts";
import type { Namespace } from "#config/kinds/namespace/schema.ts";
import { nodeKind } from "#config/kinds/node/kind.ts";
import { peerAuthenticationKind } from "#config/kinds/peer-authentication/kind.ts";
import { podKind } from "#config/kinds/pod/kind.ts";
import type { Pod, PodStatus } from "#config/kinds/pod/schema.ts";
import { proxyConfigKind } from "#config/kinds/proxy-config/kind.ts";
import { requestAuthenticationKind } from "#config/kinds/request-authentication/kind.ts";
import { secretKind } from "#config/kinds/secret/kind.ts";
import { serviceKind } from "#config/kinds/service/kind.ts";
import { serviceEntryKind } from "#config/kinds/service-entry/kind.ts";
import { sidecarKind } from "#config/kinds/sidecar/kind.ts";
import { ANY_NAMESPACE, type UnreadablePolicy } from "#config/kinds/unreadable-policy.ts";
import { virtualServiceKind } from "#config/kinds/virtual-service/kind.ts";
import { workloadEntryKind } from "#config/kinds/workload-entry/kind.ts";
import type { WorkloadEntry } from "#config/kinds/workload-entry/schema.ts";
import { workloadGroupKind } from "#config/kinds/workload-group/kind.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { byAge, oldestFirst } from "#config/terms/precedence.ts";
import { finished, type Steps } from "#lib/async/steps.ts";
import { listChanges } from "#lib/collections/list-changes.ts";
import { hasSameItems } from "#lib/collections/same-items.ts";
import { compareText } from "#lib/text/compare-text.ts";
import type { Features } from "#model/features.ts";
import type { KeySets } from "#model/key-set.ts";
import type { EndpointSet } from "#model/service/endpoint.ts";
import type { GatewayAddresses } from "#model/service/network-gateway.ts";
import { type Service, type ServiceKey, serviceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { discovered } from "./clusters/discovered.ts";
import { namedGateways, networkGateways, resolvedGateways } from "./clusters/network-gateways.ts";
import { clusterSecrets, type Registry, type RemoteCluster, withRemoteClusters } from "./clusters/remote-clusters.ts";
import { endpointSets } from "./endpoints/endpoint-sets.ts";
import { foundWorkloads } from "./endpoints/found-workloads.ts";
import { objectsByKind } from "./identity/by-kind.ts";
import { keepChanged, keepIdentity, keepSorted, type ListRules } from "./identity/keep-identity.ts";
import { isSame, madeFrom } from "./identity/memo.ts";
import { joinedVirtualServices } from "./routes/delegates.ts";
import { convertIngresses } from "./routes/ingress.ts";
import { autoRanges } from "./services/addresses.ts";
import { withAliases } from "./services/aliases.ts";
import { assignAddresses } from "./services/assign-addresses.ts";
import { type DraftInput, type ServiceDraft, serviceDrafts } from "./services/drafts.ts";
import { knownWorkloads } from "./workloads/known-workloads.ts";

/** All that a snapshot is made of. */
export interface SnapshotInput {
  readonly objects: readonly ConfigObject[];
  /** What stands in for security objects that cannot be read; none when not given. */
  readonly unreadable?: readonly ConfigObject<UnreadablePolicy>[] | undefined;
  readonly mesh: MeshConfig;
  readonly features: Features;
  /**
   * Objects come from an API server, beside which controllers make EndpointSlices and addresses. When not given, a Service
   * without slices has the ready pods that it selects, and hosts without address get one here.
   */
  readonly byApiServer?: boolean | undefined;
  /** Clusters beside that of the objects; none when not given. */
  readonly remotes?: readonly RemoteCluster[] | undefined;
  /** None when not given. */
  readonly keySets?: KeySets | undefined;
  /** None when not given. */
  readonly gatewayAddresses?: GatewayAddresses | undefined;
  /** The snapshot before this one: what did not change keeps its identity and its address. */
  readonly previous?: Snapshot | undefined;
}

/** Builds the state of the mesh; `previous` itself when nothing changed. */
export function buildSnapshot(input: SnapshotInput): Snapshot {
  return finished(snapshotSteps(input));
}

/** The same in steps: thousands of objects take longer than the event loop may be blocked. */
export function* snapshotSteps(input: SnapshotInput): Steps<Snapshot> {
  const { previous = NOTHING } = input;
  const mesh = keepIdentity(previous.mesh, input.mesh);
  const features = keepIdentity(previous.features, input.features);
  const found = discovered(input.objects, mesh);
  const ofKind = objectsOfKind(objectsByKind(features, found));
  const draftInput: DraftInput = {
    services: ofKind(serviceKind),
    serviceEntries: ofKind(serviceEntryKind),
    workloadEntries: sortedEntries(features, ofKind(workloadEntryKind)),
    slices: sortedSlices(features, ofKind(endpointSliceKind)),
    pods: sortedPods(features, ofKind(podKind)),
    nodes: ofKind(nodeKind),
    // What the control plane's own namespace says counts in any case.
    namespaces: found === input.objects ? ofKind(namespaceKind) : namespacesOf(input.objects),
    byApiServer: input.byApiServer ?? false,
    mesh,
    features,
  };
  yield;
  const { drafts, endpoints, workloads, gateways } = yield* registryOf(draftInput, input.remotes ?? []);
  const fromIngresses = convertIngresses({
    ingresses: ofKind(ingressKind),
    classes: ofKind(ingressClassKind),
    services: draftInput.services,
    mesh,
    domain: features.domain,
    gatewayNamespace: features.ingressNamespace,
  });
  const { defaultVirtualServiceExportTo: exportTo } = mesh;
  const written = ofKind(virtualServiceKind);
  const joined = joinedVirtualServices(features, written, { exportTo, domain: features.domain });
  const { virtualServices: further } = fromIngresses;
  const routes = further.length === 0 ? joined : [...joined, ...further];
  yield;
  const virtualServices = objects(previous.virtualServices, routes);
  yield;
  const allServices = services(previous.services, drafts, features);
  yield;
  const next: Snapshot = {
    version: previous.version + 1,
    mesh,
    features,
    services: allServices,
    networkGateways: keepIdentity(
      previous.networkGateways,
      resolvedGateways(gateways, input.gatewayAddresses ?? NO_GATEWAY_ADDRESSES),
    ),
    namedGateways: keepIdentity(previous.namedGateways, namedGateways(gateways)),
    endpoints: keepEndpoints(previous.endpoints, endpoints),
    workloads: knownWorkloads(previous.workloads, workloads),
    virtualServices,
    destinationRules: objects(previous.destinationRules, ofKind(destinationRuleKind)),
    gateways: objects(previous.gateways, [...ofKind(gatewayKind), ...fromIngresses.gateways]),
    sidecars: objects(previous.sidecars, ofKind(sidecarKind)),
    peerAuthentications: objects(previous.peerAuthentications, ofKind(peerAuthenticationKind)),
    authorizationPolicies: objects(previous.authorizationPolicies, ofKind(authorizationPolicyKind)),
    envoyFilters: objects(previous.envoyFilters, ofKind(envoyFilterKind)),
    requestAuthentications: objects(previous.requestAuthentications, ofKind(requestAuthenticationKind)),
    unreadablePolicies: keepIdentity(previous.unreadablePolicies, unreadablePolicies(input)),
    namespaces: objects(previous.namespaces, ofKind(namespaceKind)),
    proxyConfigs: objects(previous.proxyConfigs, ofKind(proxyConfigKind)),
    workloadGroups: objects(previous.workloadGroups, ofKind(workloadGroupKind)),
    secrets: objects(previous.secrets, ofKind(secretKind)),
    clusterSecrets: clusterSecrets(input.remotes ?? [], mesh, previous.clusterSecrets),
    configMaps: objects(previous.configMaps, ofKind(configMapKind)),
    keySets: keepTexts(previous.keySets, input.keySets ?? NO_KEY_SETS),
  };
  return input.previous !== undefined && hasSameParts(previous, next) ? previous : next;
}

/** An object that may be of any namespace is of all of them, as those of the root namespace are. */
function unreadablePolicies({ unreadable = [], mesh, features }: SnapshotInput): Snapshot["unreadablePolicies"] {
  if (!features.unreadableDeny) return [];
  return unreadable.map((policy) =>
    policy.metadata.namespace === ANY_NAMESPACE
      ? { ...policy, metadata: { ...policy.metadata, namespace: mesh.rootNamespace } }
      : policy,
  );
}

/** Of the last snapshot: mostly nothing has changed that services and endpoints are made from. */
const lastRegistry = new WeakMap<Features, { readonly from: readonly unknown[]; readonly registry: Registry }>();

/** Services and endpoints of all clusters. */
function* registryOf(input: DraftInput, remotes: readonly RemoteCluster[]): Steps<Registry> {
  const from = [...Object.values(input), remotes];
  const last = lastRegistry.get(input.features);
  if (last?.from.every((one, i) => isSame(one, from[i]))) return last.registry;
  const registry = yield* newRegistry(input, remotes);
  lastRegistry.set(input.features, { from, registry });
  return registry;
}

function* newRegistry(input: DraftInput, remotes: readonly RemoteCluster[]): Steps<Registry> {
  const { mesh, features, serviceEntries } = input;
  const drafts = yield* serviceDrafts(input);
  const found = yield* foundWorkloads(input);
  const endpoints = yield* endpointSets(input, found);
  const services = drafts.map(({ service }) => service);
  const gateways = networkGateways(services, mesh.networks ?? {}, features.clusterId);
  const common = { mesh, features, serviceEntries, order: oldestFirst };
  return yield* withRemoteClusters({ drafts, endpoints, workloads: found.known, gateways }, remotes, common);
}

const NO_KEY_SETS: KeySets = new Map();
const NO_GATEWAY_ADDRESSES: GatewayAddresses = new Map();

const NOTHING: Omit<Snapshot, "mesh" | "features"> & { readonly mesh?: MeshConfig; readonly features?: Features } = {
  version: 0,
  services: [],
  networkGateways: [],
  namedGateways: [],
  namespaces: [],
  proxyConfigs: [],
  workloadGroups: [],
  endpoints: new Map(),
  workloads: new Map(),
  virtualServices: [],
  destinationRules: [],
  gateways: [],
  sidecars: [],
  peerAuthentications: [],
  authorizationPolicies: [],
  envoyFilters: [],
  requestAuthentications: [],
  unreadablePolicies: [],
  secrets: [],
  clusterSecrets: [],
  configMaps: [],
  keySets: NO_KEY_SETS,
};

/** The sorted services. The same drafts as the last time give the same list without another look. */
const services = madeFrom(
  (previous: readonly Service[], drafts: readonly ServiceDraft[], _: unknown, features: Features) =>
    keepSorted(previous, withAliases(assignAddresses(drafts, previous, autoRanges(features))), {
      keyOf: serviceKey,
      keep: keepIdentity,
      // The hosts of one ServiceEntry have its name.
      order: (a, b) => byAge(a, b) || compareText(a.hostname, b.hostname),
    }),
);

const sortedPods = sorter<ConfigObject<Pod, PodStatus>>();
const sortedEntries = sorter<ConfigObject<WorkloadEntry>>();
const sortedSlices = sorter<ConfigObject<EndpointSlice>>();

/** There are many, and mostly none of them or one has changed. */
function sorter<Item extends ConfigObject>(): (owner: Features, items: readonly Item[]) => readonly Item[] {
  const last = new WeakMap<Features, { readonly items: readonly Item[]; readonly sorted: readonly Item[] }>();
  const rules: ListRules<Item> = { keyOf: objectKey, keep: (_, item) => item, order: oldestFirst };
  return (owner, items) => {
    const known = last.get(owner);
    const changed = known && keepChanged(known.sorted, listChanges(known.items, items), rules);
    const sorted = changed ?? items.toSorted(oldestFirst);
    last.set(owner, { items, sorted });
    return sorted;
  };
}

function namespacesOf(objects: readonly ConfigObject[]): readonly ConfigObject<Namespace>[] {
  return objects.filter(isOfKind(namespaceKind));
}

/** Sorted objects. One that merely moved to another line of its file is the same object. */
function objects<Spec>(
  previous: readonly ConfigObject<Spec>[],
  next: readonly ConfigObject<Spec>[],
): readonly ConfigObject<Spec>[] {
  return sortedObjects(previous, next) as readonly ConfigObject<Spec>[];
}

const sortedObjects = madeFrom(
  (previous: readonly ConfigObject[], next: readonly ConfigObject[], before: readonly ConfigObject[] | undefined) => {
    const { removed, added } = listChanges(before ?? [], next);
    const gone = before === undefined ? previous : removed.map((object) => keptAs.get(object) ?? object);
    return keepChanged(previous, { removed: gone, added }, OBJECT_RULES) ?? keepSorted(previous, next, OBJECT_RULES);
  },
);

/** What became of objects that were taken over what was there before. */
const keptAs = new WeakMap<ConfigObject, ConfigObject>();

const OBJECT_RULES: ListRules<ConfigObject> = {
  keyOf: objectKey,
  keep: (before, object) => {
    if (before === undefined || before.origin?.file !== object.origin?.file) return object;
    const kept = keepIdentity(before, { ...object, origin: before.origin });
    keptAs.set(object, kept);
    return kept;
  },
  order: oldestFirst,
};

/** What endpoints of a snapshot were made from. */
const foundAs = new WeakMap<Snapshot["endpoints"], ReadonlyMap<ServiceKey, EndpointSet>>();

function keepEndpoints(
  previous: Snapshot["endpoints"],
  next: ReadonlyMap<ServiceKey, EndpointSet>,
): Snapshot["endpoints"] {
  if (foundAs.get(previous) === next) return previous;
  const kept = keptEndpoints(previous, next);
  foundAs.set(kept, next);
  return kept;
}

function keptEndpoints(
  previous: Snapshot["endpoints"],
  next: ReadonlyMap<ServiceKey, EndpointSet>,
): Snapshot["endpoints"] {
  let same = next.size === previous.size;
  const merged = new Map<ServiceKey, EndpointSet>();
  for (const [key, set] of next) {
    const before = previous.get(key);
    const kept = before === undefined || before === set ? set : keepEndpointSet(before, set);
    merged.set(key, kept);
    same &&= before === kept;
  }
  return same ? previous : merged;
}

function keepTexts(previous: KeySets, next: KeySets): KeySets {
  const same = next.size === previous.size && [...next].every(([id, text]) => previous.get(id) === text);
  return same ? previous : next;
}

/** What sets of endpoints that took over others were made from. */
const takenFrom = new WeakMap<EndpointSet, EndpointSet>();

/** Endpoints that are equal to one before are that one, wherever in the list they stand. */
function keepEndpointSet(before: EndpointSet, set: EndpointSet): EndpointSet {
  if (takenFrom.get(before) === set) return before;
  const kept = equalKept(before, set);
  takenFrom.set(kept, set);
  return kept;
}

function equalKept(before: EndpointSet, set: EndpointSet): EndpointSet {
  const byAddress = new Map(before.endpoints.map((endpoint) => [endpoint.address, endpoint]));
  const endpoints = set.endpoints.map((endpoint) => keepIdentity(byAddress.get(endpoint.address), endpoint));
  const identities = keepIdentity(before.identities, set.identities);
  const same = identities === before.identities && hasSameItems(endpoints, before.endpoints);
  return same ? before : { endpoints, identities };
}

function hasSameParts(a: typeof NOTHING, b: Snapshot): a is Snapshot {
  const parts: Snapshot = { ...b, version: a.version };
  return (Object.keys(parts) as (keyof Snapshot)[]).every((name) => a[name] === parts[name]);
}
