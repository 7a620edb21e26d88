import type { Resolution, Service } from "#model/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { inScope, type Scope } from "./scope.ts";

/** Istio prints the number of the constant. */
const RESOLUTION: Readonly<Record<Resolution, number>> = {
  static: 0,
  dns: 1,
  passthrough: 2,
  "dns-round-robin": 3,
  alias: 4,
  "dynamic-dns": 5,
};

/** All services, in Istio's shape. */
export function registryz(snapshot: Snapshot, scope: Scope): readonly object[] {
  return snapshot.services.filter(({ namespace }) => inScope(scope, namespace)).map(serviceOf);
}

/** One service, in Istio's shape. */
export function serviceOf(service: Service): object {
  const [firstAddress] = service.addresses;
  return {
    Attributes: {
      ServiceRegistry: service.registry,
      Name: service.name,
      Namespace: service.namespace,
      Labels: orNull(service.labels),
      ExportTo: service.exportTo.length > 0 ? Object.fromEntries(service.exportTo.map((to) => [to, {}])) : null,
    },
    ports: service.ports.map(({ name, port, protocol }) => ({ name, port, protocol })),
    creationTime: timeOf(service.createdAt),
    hostname: service.hostname,
    clusterVIPs: { Addresses: service.addresses.length > 1 ? service.addresses : null },
    defaultAddress: firstAddress ?? "0.0.0.0",
    ...(service.autoAddress === undefined ? {} : { autoAllocatedIPv4Address: service.autoAddress }),
    ...(service.autoAddress6 === undefined ? {} : { autoAllocatedIPv6Address: service.autoAddress6 }),
    ...(service.subjectAltNames.length > 0 ? { serviceAccounts: service.subjectAltNames } : {}),
    Resolution: RESOLUTION[service.resolution],
    MeshExternal: service.meshExternal,
  };
}

function orNull(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> | null {
  return Object.keys(labels).length > 0 ? labels : null;
}

/** Go's zero time where no time is known. */
function timeOf(createdAt: number): string {
  return createdAt === 0 ? "0001-01-01T00:00:00Z" : new Date(createdAt).toISOString();
}
