import { formatSpiffeId } from "#lib/pki/spiffe-id.ts";
import { type Endpoint, isOffered, NO_ENDPOINTS } from "#model/service/endpoint.ts";
import { type Service, serviceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { inScope, type Scope } from "./scope.ts";

/** Istio prints the number of the constant. */
const HEALTH: Readonly<Record<Endpoint["health"], number>> = {
  unknown: 0,
  healthy: 1,
  unhealthy: 2,
  draining: 3,
  terminating: 4,
};

/** Endpoints by hostname, namespace and registry, in Istio's shape: one entry per service port and endpoint. */
export function endpointz(snapshot: Snapshot, scope: Scope): object {
  const services = snapshot.services.filter(
    (service) => inScope(scope, service.namespace) && endpointsOf(snapshot, service).endpoints.length > 0,
  );
  return Object.fromEntries(
    [...Map.groupBy(services, ({ hostname }) => hostname)].map(([hostname, sameHost]) => [
      hostname,
      Object.fromEntries(sameHost.map((service) => [service.namespace, shardsOf(snapshot, service)])),
    ]),
  );
}

function endpointsOf(snapshot: Snapshot, service: Service) {
  return snapshot.endpoints.get(serviceKey(service)) ?? NO_ENDPOINTS;
}

function shardsOf(snapshot: Snapshot, service: Service): object {
  const { endpoints, identities } = endpointsOf(snapshot, service);
  const { trustDomain } = snapshot.mesh;
  const entries = service.ports.flatMap(({ name, port: servicePort }) =>
    endpoints.flatMap((endpoint) => {
      const port = endpoint.ports[name];
      if (port === undefined) return [];
      const ports = { ServicePortName: name, LegacyClusterPortKey: servicePort, EndpointPort: port };
      const isOfferedSick = isOffered({ ...endpoint, health: "unhealthy" }, service);
      return { ...ports, ...entryOf(endpoint, trustDomain), SendUnhealthyEndpoints: isOfferedSick };
    }),
  );
  return {
    Shards: { [`${service.registry}/${snapshot.features.clusterId}`]: entries },
    ServiceAccounts: Object.fromEntries(identities.map((identity) => [identity, {}])),
  };
}

function entryOf(endpoint: Endpoint, trustDomain: string): object {
  const { namespace, serviceAccount } = endpoint;
  return {
    Labels: endpoint.labels,
    Addresses: endpoint.addresses ?? [endpoint.address],
    ServiceAccount: serviceAccount === "" ? "" : formatSpiffeId({ trustDomain, namespace, serviceAccount }),
    Network: endpoint.network,
    Locality: { Label: endpoint.locality, ClusterID: endpoint.clusterId },
    LbWeight: endpoint.weight,
    TLSMode: endpoint.tlsMode,
    Namespace: namespace,
    WorkloadName: endpoint.workloadName,
    HostName: endpoint.podName?.hostname ?? "",
    SubDomain: endpoint.podName?.subdomain ?? "",
    HealthStatus: HEALTH[endpoint.health],
    NodeName: endpoint.nodeName ?? "",
  };
}
