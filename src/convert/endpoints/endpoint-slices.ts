/** Endpoints of a Kubernetes Service from its EndpointSlices. */

import type { EndpointSlice, SliceEndpoint } from "#config/kinds/endpoint-slice/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Endpoint } from "#model/service/endpoint.ts";
import { memoized } from "../identity/memo.ts";
import type { PodFinder } from "../workloads/pods.ts";
import { endpointOf, type Surroundings, type Workload, workloadOfEntry } from "../workloads/workloads.ts";

/** An EndpointSlice object. */
export type SliceObject = ConfigObject<EndpointSlice>;

const SERVICE_NAME = "kubernetes.io/service-name";
/** Slices that another cluster's services were imported by: they are no endpoints of the service here. */
const IMPORTED_NAME = "multicluster.kubernetes.io/service-name";

/** `namespace/name` of the Service that the slice belongs to; undefined when it is none of a Service. */
export const serviceOfSlice = memoized(({ metadata, spec }: SliceObject): string | undefined => {
  const name = metadata.labels[SERVICE_NAME];
  if (!name || metadata.labels[IMPORTED_NAME] !== undefined || spec.addressType === "FQDN") return undefined;
  return `${metadata.namespace}/${name}`;
});

/** The workload behind an address of a slice; `null` for a pod that is not known yet, undefined for no pod at all. */
export type SliceWorkload = Workload | undefined | null;

/** The pods of a namespace; undefined where there are none. */
export type PodsIn = (namespace: string) => PodFinder | undefined;

/** The workloads of all addresses of a slice, in their order. */
export function sliceWorkloads(slice: SliceObject, podsIn: PodsIn): readonly SliceWorkload[] {
  return referencesOf(slice).map(({ namespace, pod, address }) =>
    pod === undefined ? podsIn(namespace)?.at(address) : (podsIn(namespace)?.named(pod) ?? null),
  );
}

/** Where the pods of slices are: in the namespace of the slice, unless somebody says otherwise. */
export function namespacesOf(slices: readonly SliceObject[]): readonly string[] {
  return [...new Set(slices.flatMap((slice) => referencesOf(slice).map(({ namespace }) => namespace)))];
}

/** How the pods of all addresses are found: by the name of the pod, or where there is none by the address. */
const referencesOf = memoized(({ metadata, spec }: SliceObject) =>
  (spec.endpoints ?? []).flatMap(({ addresses = [], targetRef }) => {
    const isPod = targetRef?.kind === "Pod";
    const namespace = (isPod && targetRef.namespace) || metadata.namespace;
    return addresses.map((address) => ({ namespace, pod: isPod ? (targetRef.name ?? "") : undefined, address }));
  }),
);

/** What endpoints depend on beside their slice. */
export interface SliceTraits {
  /** The service lets its endpoints finish their sessions. */
  readonly keepsSessions: boolean;
  /** Pods that have addresses of both families are one endpoint with both. */
  readonly bothFamilies: boolean;
  readonly around: Surroundings;
}

/** The endpoints of one slice. An address whose pod is not known yet is left out: its identity would be a guess. */
export function sliceEndpoints(
  { spec }: SliceObject,
  workloads: readonly SliceWorkload[],
  traits: SliceTraits,
): readonly Endpoint[] {
  const ports = Object.fromEntries((spec.ports ?? []).map(({ name = "", port = 0 }) => [name, port]));
  let next = 0;
  return (spec.endpoints ?? []).flatMap((endpoint) =>
    (endpoint.addresses ?? []).flatMap((address): Endpoint[] => {
      const workload = workloads[next++];
      const health = healthOf(endpoint, traits.keepsSessions);
      if (workload === null) return [];
      if (workload === undefined) {
        const network = traits.around.networkOf(address, {});
        return [{ ...endpointOf(workloadOfEntry({ address, network }, NOBODY, traits.around), ports), health }];
      }
      const { addresses = [], ...alone } = workload;
      if (endpoint.targetRef?.kind !== "Pod" || !traits.bothFamilies || addresses.length < 2) {
        return [{ ...endpointOf(alone, ports), address, health }];
      }
      // The slice of the other family has the same pods.
      return spec.addressType === "IPv6" ? [] : [{ ...endpointOf(workload, ports), health }];
    }),
  );
}

const NOBODY = { name: "", namespace: "" };

/** The endpoints of all slices of a service. An address may be in two of them for a moment, while it moves. */
export function joinedSlices(slices: readonly (readonly Endpoint[])[]): readonly Endpoint[] {
  const [only = [], ...others] = slices;
  if (others.length === 0) return only;
  const known = new Set<string>();
  return slices.flat().flatMap((endpoint): Endpoint[] => {
    const isNew = (name: string) => !known.has(`${endpoint.address}/${name}`);
    const ports = Object.fromEntries(Object.entries(endpoint.ports).filter(([name]) => isNew(name)));
    for (const name of Object.keys(ports)) known.add(`${endpoint.address}/${name}`);
    if (Object.keys(ports).length === Object.keys(endpoint.ports).length) return [endpoint];
    return Object.keys(ports).length === 0 ? [] : [{ ...endpoint, ports }];
  });
}

/** What Kubernetes does not say is taken for true. An endpoint that ends its work stays for services with sessions. */
function healthOf({ conditions = {} }: SliceEndpoint, keepsSessions: boolean): Endpoint["health"] {
  const { ready = true, serving = true, terminating = true } = conditions;
  if (ready) return "healthy";
  if (terminating) return keepsSessions && serving ? "draining" : "terminating";
  return "unhealthy";
}
