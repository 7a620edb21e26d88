/** Hosts that mean, in every cluster of the mesh, the workloads of that cluster only. */

import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import { isWildcard } from "#config/terms/host.ts";
import type { EndpointSet } from "#model/service/endpoint.ts";
import type { Service } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { mostSpecific } from "../names/hosts.ts";
import { derived } from "../recipes/indexes.ts";

/** Whether clients only get endpoints of their own cluster, by the mesh config or since every cluster has its own. */
export function isClusterLocal(
  { mesh, features }: Pick<Snapshot, "mesh" | "features">,
  { hostname }: Pick<Service, "hostname">,
): boolean {
  const { exact, wildcards } = localHosts(features.domain, mesh);
  return mostSpecific(hostname, exact, wildcards) ?? false;
}

/** Whether some service that is found by name is of one cluster only: then that of a proxy decides its clusters. */
export function hasLocalNames({ services, mesh, features }: Pick<Snapshot, "services" | "mesh" | "features">): boolean {
  return (mesh.serviceSettings ?? []).length > 0 && localNames(features.domain, services, mesh).size > 0;
}

/** The endpoints of a service that proxies of a cluster look up: all of them, unless the service is of one cluster only. */
export function endpointsIn(
  clusterId: string | undefined,
  { services, mesh, features }: Pick<Snapshot, "services" | "mesh" | "features">,
  of: { readonly service: Service; readonly endpoints: EndpointSet },
): EndpointSet {
  const { service, endpoints } = of;
  const isLocal = clusterId !== undefined && localNames(features.domain, services, mesh).has(service);
  return isLocal ? inOneCluster(clusterId, endpoints) : endpoints;
}

const localNames = derived((domain: string, services: readonly Service[], mesh: MeshConfig): ReadonlySet<Service> => {
  const { exact, wildcards } = localHosts(domain, mesh);
  const isLocal = ({ hostname }: Service) => mostSpecific(hostname, exact, wildcards) ?? false;
  const isNamed = ({ resolution }: Service) => resolution === "dns" || resolution === "dns-round-robin";
  return new Set(services.filter((service) => isNamed(service) && isLocal(service)));
});

const inOneCluster = derived(
  (clusterId: string, set: EndpointSet): EndpointSet => ({
    ...set,
    endpoints: set.endpoints.filter((endpoint) => endpoint.clusterId === clusterId),
  }),
);

const localHosts = derived((domain: string, mesh: MeshConfig) => {
  const settings = (mesh.serviceSettings ?? []).flatMap(({ hosts = [], settings = {} }) =>
    hosts.map((host) => [host, settings.clusterLocal === true] as const),
  );
  const shared = settings.filter(([, isLocal]) => !isLocal).map(([host]) => host);
  const usual = usualHosts(domain, mesh).filter((host) => !shared.some((other) => isWithin(other, host)));
  const all = [...settings, ...usual.map((host) => [host, true] as const)];
  return {
    exact: new Map(all.filter(([host]) => !isWildcard(host))),
    wildcards: new Map(all.filter(([host]) => isWildcard(host))),
  };
});

/** The system's own services, and the control plane that proxies were told to connect to. */
function usualHosts(domain: string, { defaultConfig }: MeshConfig): readonly string[] {
  const [controlPlane = ""] = (defaultConfig.discoveryAddress ?? "").split(":");
  const own = controlPlane === "" || controlPlane.endsWith(domain) ? controlPlane : `${controlPlane}.${domain}`;
  return [`*.kube-system.svc.${domain}`, `kubernetes.default.svc.${domain}`, own].filter((host) => host !== "");
}

function isWithin(host: string, usual: string): boolean {
  return host === usual || (isWildcard(usual) && host.endsWith(usual.slice(1)));
}
