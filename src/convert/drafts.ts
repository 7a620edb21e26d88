/** Services and their endpoints, as objects define them, before the services have their addresses. */
import type { ConfigObject } from "#config/config-object.ts";
import type { Service as ServiceSpec } from "#config/kinds/service.ts";
import type { ServiceEntry } from "#config/kinds/service-entry.ts";
import type { WorkloadEntry } from "#config/kinds/workload-entry.ts";
import type { MeshConfig } from "#config/mesh-config.ts";
import type { Steps } from "#lib/async/steps.ts";
import { formatSpiffeId } from "#lib/pki/spiffe-id.ts";
import type { EndpointSet } from "#model/endpoint.ts";
import type { Features } from "#model/features.ts";
import { type Service, type ServiceKey, serviceKey } from "#model/service.ts";
import { kubernetesEndpoints, serviceEntryEndpoints } from "./endpoints.ts";
import { isExternalName, kubernetesService } from "./kubernetes-service.ts";
import { memoized } from "./memo.ts";
import { serviceEntryServices, wantsAutoAddress } from "./service-entry.ts";
import {
  type ClusterlessEndpoint,
  type IndexedWorkload,
  labelSet,
  type Workload,
  workloadFinder,
  workloadOf,
} from "./workloads.ts";

/** The objects that define services, and what else services depend on. */
export interface DraftInput {
  readonly services: readonly ConfigObject<ServiceSpec>[];
  readonly serviceEntries: readonly ConfigObject<ServiceEntry>[];
  readonly workloadEntries: readonly ConfigObject<WorkloadEntry>[];
  readonly mesh: MeshConfig;
  readonly features: Features;
}

/** A service before it has its address. */
export interface ServiceDraft {
  readonly key: ServiceKey;
  readonly service: Service;
  /** Which kind of address it still needs. */
  readonly needs: "cluster-ip" | "auto-address" | undefined;
}

/** The services that the objects define. Those of objects that did not change are the same as the last time. */
export function* serviceDrafts(input: DraftInput): Steps<ServiceDraft[]> {
  const { services, serviceEntries, mesh, features } = input;
  const drafts: ServiceDraft[] = [];
  for (const object of services) {
    drafts.push(kubernetesDraft(object, mesh, features.domain));
    yield;
  }
  for (const object of serviceEntries) {
    drafts.push(...entryDrafts(object, mesh));
    yield;
  }
  return drafts;
}

/** The endpoints of each service. Several objects may define one host in one namespace: it has the endpoints of all. */
export function* endpointSets(input: DraftInput): Steps<Map<ServiceKey, EndpointSet>> {
  const { mesh, features } = input;
  const workloads: IndexedWorkload[] = [];
  for (const object of input.workloadEntries) {
    workloads.push(indexed(object));
    yield;
  }
  const find = workloadFinder(workloads);
  yield;
  const sets = new Map<ServiceKey, EndpointSet>();
  const add = (key: ServiceKey, set: EndpointSet) => {
    const other = sets.get(key);
    sets.set(key, other === undefined ? set : joined(other, set));
  };
  for (const object of input.services) {
    const { key } = kubernetesDraft(object, mesh, features.domain);
    add(key, kubernetesSet(object, find(serviceSelector(object)), mesh.trustDomain, features.clusterId));
    yield;
  }
  for (const object of input.serviceEntries) {
    const selected = find(entrySelector(object));
    for (const draft of entryDrafts(object, mesh)) {
      add(draft.key, entrySet(draft, object, selected, mesh.trustDomain, features.clusterId));
    }
    yield;
  }
  return sets;
}

const kubernetesDraft = memoized(
  (object: ConfigObject<ServiceSpec>, mesh: MeshConfig, domain: string): ServiceDraft => {
    const service = kubernetesService(object, mesh, domain);
    const hasAddress = service.addresses.length > 0 || service.headless || isExternalName(object.spec);
    return { key: serviceKey(service), service, needs: hasAddress ? undefined : "cluster-ip" };
  },
);

const entryDrafts = memoized((object: ConfigObject<ServiceEntry>, mesh: MeshConfig): ServiceDraft[] =>
  serviceEntryServices(object, mesh).map((service) => {
    const wanted = wantsAutoAddress(object) && !service.hostname.startsWith("*");
    return { key: serviceKey(service), service, needs: wanted ? "auto-address" : undefined };
  }),
);

const kubernetesSet = memoized(
  ({ spec }: ConfigObject<ServiceSpec>, selected: readonly Workload[], ...where: Where): EndpointSet =>
    endpointSet(kubernetesEndpoints(spec, selected), ...where),
);

const entrySet = memoized(
  (
    { service }: ServiceDraft,
    object: ConfigObject<ServiceEntry>,
    selected: readonly Workload[],
    ...where: Where
  ): EndpointSet => endpointSet(serviceEntryEndpoints(object, service, selected), ...where),
);

const indexed = memoized((object: ConfigObject<WorkloadEntry>): IndexedWorkload => {
  const workload = workloadOf(object);
  return { workload, ...labelSet(workload.namespace, workload.labels) };
});

const serviceSelector = memoized(({ metadata, spec }: ConfigObject<ServiceSpec>) =>
  labelSet(metadata.namespace, spec.selector),
);

const entrySelector = memoized(({ metadata, spec }: ConfigObject<ServiceEntry>) =>
  labelSet(metadata.namespace, spec.workloadSelector?.labels),
);

type Where = readonly [trustDomain: string, clusterId: string];

function endpointSet(endpoints: readonly ClusterlessEndpoint[], ...[trustDomain, clusterId]: Where): EndpointSet {
  const identities = endpoints
    .filter(({ serviceAccount }) => serviceAccount !== "")
    .map(({ namespace, serviceAccount }) => formatSpiffeId({ trustDomain, namespace, serviceAccount }));
  return {
    endpoints: endpoints.map((endpoint) => ({ ...endpoint, clusterId })),
    identities: [...new Set(identities)].sort(),
  };
}

function joined(a: EndpointSet, b: EndpointSet): EndpointSet {
  return {
    endpoints: [...a.endpoints, ...b.endpoints],
    identities: [...new Set([...a.identities, ...b.identities])].sort(),
  };
}
