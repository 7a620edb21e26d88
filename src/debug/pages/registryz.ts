import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Protocol } from "#config/terms/protocol.ts";
import type { Resolution, Service } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { inScope, type Scope } from "./scope.ts";
import { timeText } from "./time-text.ts";

/** Istio prints the number of the constant. */
const RESOLUTION: Readonly<Record<Resolution, number>> = {
  static: 0,
  dns: 1,
  passthrough: 2,
  "dns-round-robin": 3,
  alias: 4,
  "dynamic-dns": 5,
};
const ANY = 0;
const DISTRIBUTION: Readonly<Record<NonNullable<Service["trafficDistribution"]>, number>> = {
  "same-zone": 1,
  "same-node": 2,
};

/** All services, in Istio's shape. */
export function registryz(snapshot: Snapshot, scope: Scope, objects: readonly ConfigObject[]): readonly object[] {
  const show = serviceForm(snapshot, objects);
  return snapshot.services
    .filter(({ namespace }) => inScope(scope, namespace))
    .flatMap(byAddress)
    .map(show);
}

/** To Istio a host of a ServiceEntry is one service for each of its addresses. */
function byAddress(service: Service): readonly Service[] {
  if (service.registry === "Kubernetes" || service.addresses.length < 2) return [service];
  return service.addresses.map((address) => ({ ...service, addresses: [address] }));
}

/** How services are shown: in Istio's shape, with what only the objects they come from say. */
export function serviceForm(snapshot: Snapshot, objects: readonly ConfigObject[]): (service: Service) => object {
  const entries = new Map<string, string>();
  const types = new Map<string, string>();
  for (const { kind, metadata, spec } of objects) {
    const { hosts, type } = Object(spec);
    if (kind === "Service") types.set(`${metadata.namespace}/${metadata.name}`, String(type ?? "ClusterIP"));
    if (kind !== "ServiceEntry" || !Array.isArray(hosts)) continue;
    for (const host of hosts) entries.set(`${metadata.namespace}/${host}`, metadata.name);
  }
  return (service) => {
    const { namespace, name, hostname, registry } = service;
    const isKubernetes = registry === "Kubernetes";
    const ObjectName = isKubernetes ? name : (entries.get(`${namespace}/${hostname}`) ?? name);
    const Type = isKubernetes ? (types.get(`${namespace}/${name}`) ?? "ClusterIP") : "";
    return serviceOf(service, { snapshot, ObjectName, Type });
  };
}

interface Origin {
  readonly snapshot: Snapshot;
  readonly ObjectName: string;
  readonly Type: string;
}

function serviceOf(service: Service, origin: Origin): object {
  const [firstAddress] = service.addresses;
  return {
    Attributes: attributesOf(service, origin),
    ports: service.ports.map(({ name, port, protocol }) => ({ name, port, protocol: protocolName(protocol) })),
    creationTime: timeOf(service.createdAt),
    hostname: service.hostname,
    clusterVIPs: { Addresses: addressesOf(service, origin.snapshot.features.clusterId) },
    defaultAddress: firstAddress ?? "0.0.0.0",
    ...(service.autoAddress === undefined ? {} : { autoAllocatedIPv4Address: service.autoAddress }),
    ...(service.autoAddress6 === undefined ? {} : { autoAllocatedIPv6Address: service.autoAddress6 }),
    ...(service.subjectAltNames.length > 0 ? { serviceAccounts: service.subjectAltNames } : {}),
    Resolution: RESOLUTION[service.resolution],
    MeshExternal: service.meshExternal,
    ResourceVersion: "",
  };
}

/** Addresses by cluster; of a ServiceEntry only where it has several. */
function addressesOf({ registry, addresses, furtherServices = {} }: Service, clusterId: string): object | null {
  const further = Object.entries(furtherServices).map(([id, service]) => [id, service.addresses]);
  const own = registry === "Kubernetes" || addresses.length > 1 ? { [clusterId]: addresses } : {};
  return orNull({ ...(addresses.length > 0 && own), ...Object.fromEntries(further) });
}

function attributesOf(service: Service, { snapshot, ObjectName, Type }: Origin): object {
  const { features, mesh } = snapshot;
  const { aliases = [], externalAddresses = [], externalPorts = {}, trafficDistribution } = service;
  const byCluster = (value: object, isThere: boolean) => (isThere ? { [features.clusterId]: value } : null);
  const targets = service.ports.flatMap(({ port, targetPort }) =>
    targetPort === undefined ? [] : [[port, targetPort]],
  );
  return {
    ServiceRegistry: service.registry,
    Name: service.name,
    Namespace: service.namespace,
    Labels: orNull(service.labels),
    ExportTo: exportToOf(service, mesh.defaultServiceExportTo),
    LabelSelectors: orNull(service.selector ?? {}),
    Aliases:
      aliases.length > 0
        ? aliases.map(({ hostname, namespace }) => ({ Hostname: hostname, Namespace: namespace }))
        : null,
    ClusterExternalAddresses:
      externalAddresses.length > 0 ? { Addresses: { [features.clusterId]: externalAddresses } } : null,
    ClusterExternalPorts: byCluster(externalPorts, Object.keys(externalPorts).length > 0),
    PassthroughTargetPorts: orNull(Object.fromEntries(targets)),
    Type,
    ExternalName: service.aliasOf ?? "",
    NodeLocal: service.nodeLocal === true,
    TrafficDistribution: trafficDistribution === undefined ? ANY : DISTRIBUTION[trafficDistribution],
    ObjectName,
    PublishNotReadyAddresses: service.publishNotReady === true,
  };
}

/** Null where the service says nothing itself. */
function exportToOf({ exportTo }: Service, fallback: readonly string[] | undefined): object | null {
  const isFallback = exportTo.length === 0 || exportTo.join() === (fallback ?? []).join();
  return isFallback ? null : Object.fromEntries(exportTo.map((to) => [to, {}]));
}

function orNull<T extends object>(fields: T): T | null {
  return Object.keys(fields).length > 0 ? fields : null;
}

/** Istio's name for a protocol that nobody declared. */
export function protocolName(protocol: Protocol): string {
  return protocol === "Unsupported" ? "UnsupportedProtocol" : protocol;
}

/** Go's zero time where no time is known. */
function timeOf(createdAt: number): string {
  return createdAt === 0 ? "0001-01-01T00:00:00Z" : timeText(createdAt);
}
