/** The services that a workload is an endpoint of. */
import { compareText } from "#lib/compare-text.ts";
import { type EndpointSet, endpointPort } from "#model/endpoint.ts";
import type { Proxy as MeshProxy } from "#model/proxy.ts";
import { type Service, type ServiceKey, type ServicePort, serviceKey } from "#model/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { derived } from "../indexes.ts";

/** One port of the workload that a service port leads to. */
export interface ServiceTarget {
  readonly service: Service;
  readonly port: ServicePort;
  /** The port the application listens on. */
  readonly targetPort: number;
}

/** What of a proxy tells which workload it belongs to. */
export type Whereabouts = Pick<MeshProxy, "addresses" | "namespace" | "metadata">;

/** What is known of a workload. */
export interface WorkloadPlace {
  /** Those of older services first. */
  readonly targets: readonly ServiceTarget[];
  /** Empty when no registry knows it. */
  readonly locality: string;
  /** None when no registry knows it. */
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * What the registries know of a workload. Only services of its own namespace count: nobody may put a service in front of
 * the workloads of others. Clusters may use the same addresses: what Kubernetes says counts in its own cluster, and labels
 * are those of the workload's cluster.
 */
export function placeOf(snapshot: Snapshot, proxy: Whereabouts): WorkloadPlace {
  const { addresses, metadata } = proxy;
  const { NAMESPACE: namespace = proxy.namespace, CLUSTER_ID: clusterId = "" } = metadata;
  const byAddress = setsByAddress("", snapshot.endpoints);
  const targets: ServiceTarget[] = [];
  let locality = "";
  let labels = NO_LABELS;
  for (const key of new Set(addresses.flatMap((address) => byAddress.get(address) ?? []))) {
    const service = servicesByKey("", snapshot.services).get(key);
    if (service === undefined || service.namespace !== namespace) continue;
    const own = snapshot.endpoints.get(key)?.endpoints.filter(({ address }) => addresses.includes(address)) ?? [];
    for (const endpoint of own) {
      const isInCluster = clusterId === "" || endpoint.clusterId === clusterId;
      if (!isInCluster && service.registry === "Kubernetes") continue;
      locality ||= endpoint.locality;
      if (isInCluster && Object.keys(labels).length === 0) labels = endpoint.labels;
      for (const port of service.ports) {
        const targetPort = endpointPort(endpoint, port);
        const isKnown = targets.some((target) => target.service === service && target.port === port);
        if (targetPort !== undefined && !isKnown) targets.push({ service, port, targetPort });
      }
    }
  }
  return { targets: targets.sort(byAge), locality, labels };
}

/** The same for all: places are compared. */
const NO_LABELS: WorkloadPlace["labels"] = {};

const setsByAddress = derived((_: string, sets: ReadonlyMap<ServiceKey, EndpointSet>) => {
  const found = new Map<string, ServiceKey[]>();
  for (const [key, { endpoints }] of sets) {
    for (const { address } of endpoints) {
      const keys = found.get(address);
      if (keys === undefined) found.set(address, [key]);
      else if (keys.at(-1) !== key) keys.push(key);
    }
  }
  return found;
});

const servicesByKey = derived((_: string, services: readonly Service[]) => {
  const found = new Map<ServiceKey, Service>();
  for (const service of services) if (!found.has(serviceKey(service))) found.set(serviceKey(service), service);
  return found;
});

function byAge(a: ServiceTarget, b: ServiceTarget): number {
  return a.service.createdAt - b.service.createdAt || compareText(a.service.hostname, b.service.hostname);
}
