/** Figures about the configuration itself, counted when somebody asks, under the names that Istio's dashboards know. */
import type { ConflictMetric } from "#explain/conflicts/conflict.ts";
import type { MetricDefinition } from "#lib/metrics/metrics.ts";
import { NO_ENDPOINTS, takesRequests } from "#model/service/endpoint.ts";
import { type Service, serviceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";

function gauge(help: string): MetricDefinition {
  return { type: "gauge", help };
}

/** All of them. */
export const MESH_GAUGES = {
  pilot_services: gauge("Services known to the control plane"),
  pilot_virt_services: gauge("Virtual services known to the control plane"),
  pilot_eds_no_instances: gauge("Services whose endpoints are told over EDS, and that have none"),
  pilot_dns_cluster_without_endpoints: gauge("Services found by DNS that have no endpoint to ask for"),
  pilot_endpoint_not_ready: gauge("Endpoints that are not healthy"),
  endpoint_no_pod: gauge("Endpoints whose pod is not known"),
} as const satisfies Record<string, MetricDefinition>;

/** Conflicts among objects, as `ConflictWatch` counts them. */
export const CONFLICT_GAUGES = {
  pilot_destrule_subsets: gauge("Subsets that several destination rules give to one host in one namespace"),
  pilot_conflict_inbound_listener: gauge("Ports of workloads that services claim for different protocols"),
  pilot_conflict_outbound_listener_tcp_over_current_tcp: gauge("Addresses and ports that several TCP services claim"),
  pilot_duplicate_envoy_clusters: gauge("Hosts that several objects of one namespace define"),
  pilot_vservice_dup_domain: gauge("Hosts that several virtual services have for the same sidecars"),
} as const satisfies Partial<Record<ConflictMetric, MetricDefinition>>;

export type MeshGauge = keyof typeof MESH_GAUGES;

/** The figures of a snapshot. */
export const MESH_FIGURES: Readonly<Record<MeshGauge, (snapshot: Snapshot) => number>> = {
  pilot_services: ({ services }) => services.length,
  pilot_virt_services: ({ virtualServices }) => virtualServices.length,
  pilot_eds_no_instances: (snapshot) => withoutEndpoints(snapshot, ({ resolution }) => resolution === "static"),
  pilot_dns_cluster_without_endpoints: (snapshot) =>
    withoutEndpoints(snapshot, ({ resolution }) => resolution === "dns" || resolution === "dns-round-robin"),
  pilot_endpoint_not_ready: ({ endpoints }) =>
    endpoints
      .values()
      .reduce((sum, set) => sum + set.endpoints.filter((endpoint) => !takesRequests(endpoint)).length, 0),
  endpoint_no_pod: () => 0,
};

function withoutEndpoints({ services, endpoints }: Snapshot, isMeant: (service: Service) => boolean): number {
  const hasNone = (service: Service) => (endpoints.get(serviceKey(service)) ?? NO_ENDPOINTS).endpoints.length === 0;
  return services.filter((service) => isMeant(service) && hasNone(service)).length;
}
