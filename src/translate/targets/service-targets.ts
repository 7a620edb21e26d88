/** The services that a workload is an endpoint of. */
import { compareText } from "#lib/text/compare-text.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import { localityOfLabels } from "#model/proxy/proxy-node.ts";
import { type Endpoint, endpointPort } from "#model/service/endpoint.ts";
import { furtherService, type Service, type ServiceKey, type ServicePort, serviceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { parsePodPorts } from "#model/workload/pod-ports.ts";
import { type KnownWorkload, workloadKey } from "#model/workload/workload.ts";
import { derived, kept, revised } from "../recipes/indexes.ts";
import { type Selectable, selectedTargets } from "./selected-targets.ts";
import { setsAtAddress } from "./sets-by-address.ts";

/** One port of the workload that a service port leads to. */
export interface ServiceTarget {
  readonly service: Service;
  readonly port: ServicePort;
  /** The port the application listens on. */
  readonly targetPort: number;
}

/** What of a proxy tells which workload it belongs to. */
export type ProxyClaims = Pick<MeshProxy, "addresses" | "namespace" | "metadata" | "id" | "labels">;

/** What is known of a workload. */
export interface WorkloadPlace {
  /** Those of older services first. */
  readonly targets: readonly ServiceTarget[];
  /** Empty when no registry knows it. */
  readonly locality: string;
  /** None when no registry knows it. */
  readonly labels: Readonly<Record<string, string>>;
  /** What callers are told of an endpoint that is written into a ServiceEntry, where the workload is one. */
  readonly tlsMode?: Endpoint["tlsMode"] | undefined;
}

/**
 * What the registries know of a workload. Only services of its own namespace count: nobody may put a service in front of
 * the workloads of others. Clusters may use the same addresses: what Kubernetes says counts in its own cluster, and labels
 * are those of the workload's cluster.
 */
export function placeOf(snapshot: Snapshot, proxy: ProxyClaims): WorkloadPlace {
  const { services, workloads, features } = snapshot;
  const clusterId = clusterOf(snapshot, proxy);
  const workload = kept(proxy, "workload", [workloads, features.clusterId], () =>
    knownWorkload(snapshot, proxy, clusterId),
  );
  // What it is made from is all that counts here of a snapshot: most change something else.
  const from = [services, workload, clusterId, ...setsAt(snapshot, proxy)];
  return revised<readonly unknown[], WorkloadPlace>(proxy, { key: "place", from }, (last) => {
    const place = newPlace(snapshot, proxy, { clusterId, workload });
    return last !== undefined && isSamePlace(last.value, place) ? last.value : place;
  });
}

interface Whose {
  readonly clusterId: string | undefined;
  readonly workload: KnownWorkload | undefined;
}

function newPlace(snapshot: Snapshot, proxy: ProxyClaims, { clusterId, workload }: Whose): WorkloadPlace {
  const listed = listedAt(snapshot, proxy);
  const isMachine = workload?.kind === "machine";
  const entry = listed.find(({ service, isInCluster }) => service.registry === "External" && isInCluster)?.endpoint;
  // A machine is known by a ServiceEntry that selects it. Labels of an endpoint that is written into a ServiceEntry are no proxy's.
  const labels = (isMachine ? entry : workload)?.labels ?? NO_LABELS;
  const told = workload ?? toldByProxy(proxy, labels);
  const selected = selectedTargets(snapshot.services, { ...told, namespace: proxy.namespace, clusterId });
  // Services that select nothing have the endpoints that somebody lists.
  const isListed = !isMachine && selected.length === 0;
  const others = listed.filter(({ service }) => isListed || service.registry === "External").flatMap(targetsOf);
  const targets = [...selected, ...distinct(others)].sort(byAge);
  return { targets, locality: localityOfLabels(labels), labels, tlsMode: workload ? undefined : entry?.tlsMode };
}

function isSamePlace(a: WorkloadPlace, b: WorkloadPlace): boolean {
  const isSame = (target: ServiceTarget, other: ServiceTarget | undefined) =>
    target.service === other?.service && target.port === other.port && target.targetPort === other.targetPort;
  if (a.locality !== b.locality || a.labels !== b.labels || a.tlsMode !== b.tlsMode) return false;
  if (a.targets.length !== b.targets.length) return false;
  return a.targets.every((target, i) => isSame(target, b.targets[i]));
}

/** The same for all: places are compared. */
const NO_LABELS: WorkloadPlace["labels"] = {};

interface Listed {
  readonly service: Service;
  readonly endpoint: Endpoint;
  /** The endpoint is in the cluster of the proxy, as far as that is known. */
  readonly isInCluster: boolean;
}

/** Keys of the services that have an endpoint with an address of the proxy, each followed by its endpoints. */
function setsAt(snapshot: Snapshot, { addresses }: ProxyClaims): readonly unknown[] {
  const found: unknown[] = [];
  for (const address of addresses) {
    for (const key of setsAtAddress(snapshot, address)) found.push(key, snapshot.endpoints.get(key));
  }
  return found;
}

/** Endpoints with the addresses of a proxy, of services that count for it. */
function listedAt(snapshot: Snapshot, { addresses, metadata, namespace: own }: ProxyClaims): readonly Listed[] {
  const { NAMESPACE: namespace = own, CLUSTER_ID: clusterId = "" } = metadata;
  const found: Listed[] = [];
  for (const key of new Set(addresses.flatMap((address) => setsAtAddress(snapshot, address)))) {
    const service = servicesByKey("", snapshot.services).get(key);
    if (service === undefined || service.namespace !== namespace) continue;
    for (const endpoint of snapshot.endpoints.get(key)?.endpoints ?? []) {
      const isInCluster = clusterId === "" || endpoint.clusterId === clusterId;
      const counts = isInCluster || service.registry !== "Kubernetes";
      const there = furtherService(service, endpoint.clusterId) ?? service;
      if (counts && addresses.includes(endpoint.address)) found.push({ service: there, endpoint, isInCluster });
    }
  }
  return found;
}

/** Undefined for the one that holds the configuration, or when the proxy does not know. */
function clusterOf({ features }: Snapshot, { metadata: { CLUSTER_ID: clusterId } }: ProxyClaims): string | undefined {
  return typeof clusterId !== "string" || clusterId === features.clusterId ? undefined : clusterId || undefined;
}

/** The workload itself: an entry with its address, else the pod of its name. */
function knownWorkload(
  { workloads, features }: Snapshot,
  { addresses, namespace, id }: ProxyClaims,
  clusterId = features.clusterId,
): KnownWorkload | undefined {
  for (const address of addresses) {
    const entry = workloads.get(workloadKey("entry", { clusterId, namespace, name: address }));
    if (entry !== undefined) return entry;
  }
  const name = id.endsWith(`.${namespace}`) ? id.slice(0, -namespace.length - 1) : id;
  const [address = ""] = addresses;
  return (
    workloads.get(workloadKey("pod", { clusterId, namespace, name })) ??
    workloads.get(workloadKey("pod-at", { clusterId, namespace, name: address }))
  );
}

/** What no registry tells of a workload, its proxy does. */
function toldByProxy(
  { labels, metadata }: ProxyClaims,
  known: WorkloadPlace["labels"],
): Omit<Selectable, "clusterId" | "namespace"> {
  const isKnown = Object.keys(known).length > 0;
  return { kind: "unknown", labels: isKnown ? known : labels, ports: parsePodPorts(metadata.POD_PORTS) ?? {} };
}

function targetsOf({ service, endpoint }: Listed): readonly ServiceTarget[] {
  return service.ports.flatMap((port) => {
    const targetPort = endpointPort(endpoint, port);
    return targetPort === undefined ? [] : { service, port, targetPort };
  });
}

function distinct(targets: readonly ServiceTarget[]): readonly ServiceTarget[] {
  const isSame = (a: ServiceTarget, b: ServiceTarget) =>
    a.service === b.service && a.port === b.port && a.targetPort === b.targetPort;
  return targets.filter((target, i) => targets.findIndex((other) => isSame(other, target)) === i);
}

const servicesByKey = derived((_: string, services: readonly Service[]) => {
  const found = new Map<ServiceKey, Service>();
  for (const service of services) if (!found.has(serviceKey(service))) found.set(serviceKey(service), service);
  return found;
});

function byAge(a: ServiceTarget, b: ServiceTarget): number {
  return a.service.createdAt - b.service.createdAt || compareText(a.service.hostname, b.service.hostname);
}
