/**
 * Further clusters beside the one that holds the configuration. A service of the same name and namespace is one service, with
 * the endpoints of all of them; each endpoint knows its cluster and network.
 */

import { endpointSliceKind } from "#config/kinds/endpoint-slice/kind.ts";
import { isOfKind, objectsOfKind } from "#config/kinds/kind.ts";
import { namespaceKind } from "#config/kinds/namespace/kind.ts";
import { nodeKind } from "#config/kinds/node/kind.ts";
import { podKind } from "#config/kinds/pod/kind.ts";
import { secretKind } from "#config/kinds/secret/kind.ts";
import { serviceKind } from "#config/kinds/service/kind.ts";
import type { ServiceEntry, ServiceEntryStatus } from "#config/kinds/service-entry/schema.ts";
import { workloadEntryKind } from "#config/kinds/workload-entry/kind.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Steps } from "#lib/async/steps.ts";
import { hasSameItems } from "#lib/collections/same-items.ts";
import type { Features } from "#model/features.ts";
import type { EndpointSet } from "#model/service/endpoint.ts";
import type { NetworkGateway } from "#model/service/network-gateway.ts";
import type { Service, ServiceKey } from "#model/service/service.ts";
import type { ClusterSecrets } from "#model/snapshot.ts";
import { endpointSets, joinedSets } from "../endpoints/endpoint-sets.ts";
import { foundWorkloads } from "../endpoints/found-workloads.ts";
import { memoized } from "../identity/memo.ts";
import { type DraftInput, type ServiceDraft, serviceDrafts } from "../services/drafts.ts";
import type { NamedWorkload } from "../workloads/known-workloads.ts";
import { discovered } from "./discovered.ts";
import { networkGateways } from "./network-gateways.ts";

/** What runs in a cluster: its Services, EndpointSlices, Pods, WorkloadEntries, Nodes, Namespaces and Secrets. */
export interface RemoteCluster {
  readonly clusterId: string;
  readonly objects: readonly ConfigObject[];
  /** Of its workloads; that of the mesh when not given. */
  readonly trustDomain?: string | undefined;
}

/** What services there are, and who serves them. */
export interface Registry {
  readonly drafts: readonly ServiceDraft[];
  readonly endpoints: ReadonlyMap<ServiceKey, EndpointSet>;
  readonly workloads: readonly NamedWorkload[];
  /** Between networks, as they are known; some may be in it twice. */
  readonly gateways: readonly NetworkGateway[];
}

export interface RegistryInput {
  readonly mesh: MeshConfig;
  readonly features: Features;
  readonly order: (a: ConfigObject, b: ConfigObject) => number;
  /** Of the cluster that holds the configuration; workloads of all clusters may be selected by them. */
  readonly serviceEntries: readonly ConfigObject<ServiceEntry, ServiceEntryStatus>[];
}

/** The registry of one cluster, with the others joined to it. Where services are defined differently, the first one decides. */
export function* withRemoteClusters(
  own: Registry,
  remotes: readonly RemoteCluster[],
  input: RegistryInput,
): Steps<Registry> {
  if (remotes.length === 0) return own;
  const drafts = new Map(own.drafts.map((draft) => [draft.key, draft]));
  const further: ServiceDraft[] = [];
  const variants = new Map<ServiceKey, [string, Service][]>();
  const sets = new Map<ServiceKey, EndpointSet[]>();
  const gateways = [...own.gateways];
  const workloads = [...own.workloads];
  for (const remote of remotes) {
    const remoteInput = draftInput(remote, input);
    const services = yield* serviceDrafts(remoteInput);
    for (const draft of services) {
      const known = variants.get(draft.key) ?? [];
      variants.set(draft.key, [...known, [remote.clusterId, draft.service]]);
      if (drafts.has(draft.key)) continue;
      drafts.set(draft.key, draft);
      further.push(elsewhere(draft));
    }
    const selecting = input.serviceEntries.filter(({ spec }) => spec.workloadSelector !== undefined);
    const found = yield* foundWorkloads(remoteInput);
    workloads.push(...found.known);
    const foundSets = yield* endpointSets({ ...remoteInput, serviceEntries: selecting }, found);
    for (const [key, set] of foundSets) sets.set(key, [...(sets.get(key) ?? []), set]);
    const all = services.map(({ service }) => service);
    gateways.push(...networkGateways(all, input.mesh.networks ?? {}, remote.clusterId));
    yield;
  }
  const endpoints = new Map(own.endpoints);
  for (const [key, remote] of sets) {
    const here = own.endpoints.get(key);
    const [first, ...rest] = here === undefined ? remote : [here, ...remote];
    if (first !== undefined) endpoints.set(key, rest.length === 0 ? first : joinedSets(first, rest));
  }
  const all = [...own.drafts, ...further].map((draft) => {
    const there = variants.get(draft.key);
    if (there === undefined) return draft;
    const [ids, services] = [there.map(([id]) => id), there.map(([, service]) => service)];
    return withFurtherServices(draft, ids, services);
  });
  return { drafts: all, endpoints, workloads, gateways };
}

/** Secrets of each cluster; the former values where they are the same. */
export function clusterSecrets(
  remotes: readonly RemoteCluster[],
  mesh: MeshConfig,
  previous: readonly ClusterSecrets[],
): readonly ClusterSecrets[] {
  const next = remotes.flatMap(({ clusterId, objects }) => {
    const secrets = discovered(objects, mesh).filter(isOfKind(secretKind));
    const before = previous.find((known) => known.clusterId === clusterId);
    if (secrets.length === 0) return [];
    return before !== undefined && hasSameItems(before.secrets, secrets) ? before : { clusterId, secrets };
  });
  return hasSameItems(previous, next) ? previous : next;
}

const elsewhere = memoized(
  (draft: ServiceDraft): ServiceDraft => ({ ...draft, service: { ...draft.service, isElsewhere: true } }),
);

const withFurtherServices = memoized(
  (draft: ServiceDraft, ids: readonly string[], services: readonly Service[]): ServiceDraft => {
    const furtherServices = Object.fromEntries(ids.map((id, i) => [id, services[i] ?? draft.service]));
    return { ...draft, service: { ...draft.service, furtherServices } };
  },
);

/** Configuration is in one cluster only: ServiceEntries of the others do not count. */
function draftInput(remote: RemoteCluster, { mesh, features, order }: RegistryInput): DraftInput {
  const { clusterId, objects, trustDomain = mesh.trustDomain } = remote;
  const ofKind = objectsOfKind(Map.groupBy(discovered(objects, mesh), ({ kind }) => kind));
  return {
    services: ofKind(serviceKind),
    serviceEntries: [],
    workloadEntries: ofKind(workloadEntryKind).toSorted(order),
    slices: ofKind(endpointSliceKind).toSorted(order),
    pods: ofKind(podKind).toSorted(order),
    nodes: ofKind(nodeKind),
    namespaces: objects.filter(isOfKind(namespaceKind)),
    byApiServer: true,
    isRemote: true,
    mesh: trustDomain === mesh.trustDomain ? mesh : meshWithDomain(mesh, trustDomain),
    features: featuresIn(features, clusterId),
  };
}

const meshByDomain = new WeakMap<MeshConfig, Map<string, MeshConfig>>();

/** The same value each time, as below. */
function meshWithDomain(mesh: MeshConfig, trustDomain: string): MeshConfig {
  const known = meshByDomain.get(mesh) ?? new Map<string, MeshConfig>();
  meshByDomain.set(mesh, known);
  const own = known.get(trustDomain) ?? { ...mesh, trustDomain };
  known.set(trustDomain, own);
  return own;
}

const featuresByCluster = new WeakMap<Features, Map<string, Features>>();

/** The same value each time: what is derived from it is kept as long as it is the same. */
function featuresIn(features: Features, clusterId: string): Features {
  const known = featuresByCluster.get(features) ?? new Map<string, Features>();
  featuresByCluster.set(features, known);
  const own = known.get(clusterId) ?? { ...features, clusterId };
  known.set(clusterId, own);
  return own;
}
