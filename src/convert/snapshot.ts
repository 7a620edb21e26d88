/**
 * Checked objects to the state of the mesh. Everything is derived anew, which is cheap, and then shares what is equal to
 * the previous snapshot, so that whoever compares identities sees exactly what an event touched.
 */
import { type ConfigObject, objectKey } from "#config/config-object.ts";
import type { DestinationRule } from "#config/kinds/destination-rule.ts";
import type { Gateway } from "#config/kinds/gateway.ts";
import type { PeerAuthentication } from "#config/kinds/peer-authentication.ts";
import type { Service as ServiceSpec } from "#config/kinds/service.ts";
import type { ServiceEntry } from "#config/kinds/service-entry.ts";
import type { VirtualService } from "#config/kinds/virtual-service.ts";
import type { WorkloadEntry } from "#config/kinds/workload-entry.ts";
import type { MeshConfig } from "#config/mesh-config.ts";
import type { Endpoint, EndpointSet } from "#model/endpoint.ts";
import type { Features } from "#model/features.ts";
import { type Service, type ServiceKey, serviceKey } from "#model/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { AUTO_ADDRESS_RANGE, allocateAddresses, CLUSTER_IP_RANGE } from "./addresses.ts";
import { kubernetesEndpoints, serviceEntryEndpoints } from "./endpoints.ts";
import { keepIdentity, keepList } from "./keep-identity.ts";
import { isExternalName, kubernetesService } from "./kubernetes-service.ts";
import { serviceEntryServices, wantsAutoAddress } from "./service-entry.ts";
import { spiffeId } from "./spiffe-id.ts";
import { workloadFinder, workloadOf } from "./workloads.ts";

/** All that a snapshot is made of. */
export interface SnapshotInput {
  readonly objects: readonly ConfigObject[];
  readonly mesh: MeshConfig;
  readonly features: Features;
  /** The snapshot before this one: what did not change keeps its identity and its address. */
  readonly previous?: Snapshot | undefined;
}

/** Builds the state of the mesh; `previous` itself when nothing changed. */
export function buildSnapshot(input: SnapshotInput): Snapshot {
  const { objects, features, previous } = input;
  const mesh = keepIdentity(previous?.mesh, input.mesh);
  const drafts = withAddresses(serviceDrafts(input), previous);
  const next: Snapshot = {
    version: (previous?.version ?? 0) + 1,
    mesh,
    features: keepIdentity(previous?.features, features),
    services: keepServices(drafts.map((draft) => draft.service).sort(byAge), previous?.services ?? []),
    endpoints: keepEndpoints(endpointSets(drafts, mesh.trustDomain), previous?.endpoints ?? new Map()),
    virtualServices: keepObjects<VirtualService>("VirtualService", objects, previous?.virtualServices),
    destinationRules: keepObjects<DestinationRule>("DestinationRule", objects, previous?.destinationRules),
    gateways: keepObjects<Gateway>("Gateway", objects, previous?.gateways),
    peerAuthentications: keepObjects<PeerAuthentication>("PeerAuthentication", objects, previous?.peerAuthentications),
  };
  return previous !== undefined && sameParts(previous, next) ? previous : next;
}

/** A service before it has its address. */
interface Draft {
  readonly service: Service;
  readonly endpoints: readonly Endpoint[];
  /** Which kind of address it still needs. */
  readonly needs: "cluster-ip" | "auto-address" | undefined;
}

function serviceDrafts({ objects, mesh, features }: SnapshotInput): Draft[] {
  const workloads = ofKind<WorkloadEntry>("WorkloadEntry", objects).sort(byAgeAndName).map(workloadOf);
  const context = { find: workloadFinder(workloads), clusterId: features.clusterId };
  const kubernetes = ofKind<ServiceSpec>("Service", objects).map((object): Draft => {
    const service = kubernetesService(object, { mesh, features });
    const hasAddress = service.addresses.length > 0 || service.headless || isExternalName(object.spec);
    return {
      service,
      endpoints: kubernetesEndpoints(object, context),
      needs: hasAddress ? undefined : "cluster-ip",
    };
  });
  const external = ofKind<ServiceEntry>("ServiceEntry", objects).flatMap((object) =>
    serviceEntryServices(object, mesh).map(
      (service): Draft => ({
        service,
        endpoints: serviceEntryEndpoints(object, service, context),
        needs: wantsAutoAddress(object) && !service.hostname.startsWith("*") ? "auto-address" : undefined,
      }),
    ),
  );
  return [...kubernetes, ...external];
}

function withAddresses(drafts: readonly Draft[], previous: Snapshot | undefined): Draft[] {
  const before = previous?.services ?? [];
  const taken = new Set(drafts.flatMap(({ service }) => service.addresses));
  const wanting = (needs: Draft["needs"], nameOf: (service: Service) => string) =>
    [...new Set(drafts.filter((draft) => draft.needs === needs).map(({ service }) => nameOf(service)))].sort();
  const clusterIps = allocateAddresses({
    names: wanting("cluster-ip", ({ hostname }) => hostname),
    range: CLUSTER_IP_RANGE,
    taken,
    previous: new Map(before.map(({ hostname, addresses }) => [hostname, addresses[0] ?? ""])),
  });
  const autoAddresses = allocateAddresses({
    names: wanting("auto-address", serviceKey),
    range: AUTO_ADDRESS_RANGE,
    taken,
    previous: new Map(before.map((service) => [serviceKey(service), service.autoAddress ?? ""])),
  });
  return drafts.map(({ service, ...rest }) => {
    if (rest.needs === undefined) return { service, ...rest };
    if (rest.needs === "auto-address") {
      return { service: { ...service, autoAddress: autoAddresses.get(serviceKey(service)) }, ...rest };
    }
    const address = clusterIps.get(service.hostname);
    return { service: { ...service, addresses: address === undefined ? [] : [address] }, ...rest };
  });
}

/** Several objects may define one host in one namespace; its endpoints are those of all of them. */
function endpointSets(drafts: readonly Draft[], trustDomain: string): Map<ServiceKey, EndpointSet> {
  const sets = new Map<ServiceKey, EndpointSet>();
  for (const [key, group] of Map.groupBy(drafts, ({ service }) => serviceKey(service))) {
    const endpoints = group.flatMap((draft) => draft.endpoints);
    const identities = endpoints
      .filter(({ serviceAccount }) => serviceAccount !== "")
      .map(({ namespace, serviceAccount }) => spiffeId(trustDomain, namespace, serviceAccount));
    sets.set(key, { endpoints, identities: [...new Set(identities)].sort() });
  }
  return sets;
}

function keepServices(next: readonly Service[], previous: readonly Service[]): readonly Service[] {
  const known = Map.groupBy(previous, serviceKey);
  const merged = next.map((service) => keepIdentity(known.get(serviceKey(service))?.shift(), service));
  return keepList(previous, merged);
}

function keepEndpoints(
  next: ReadonlyMap<ServiceKey, EndpointSet>,
  previous: Snapshot["endpoints"],
): Snapshot["endpoints"] {
  let same = next.size === previous.size;
  const merged = new Map<ServiceKey, EndpointSet>();
  for (const [key, set] of next) {
    const kept = keepIdentity(previous.get(key), set);
    merged.set(key, kept);
    same &&= previous.get(key) === kept;
  }
  return same ? previous : merged;
}

function keepObjects<Spec>(
  kind: string,
  objects: readonly ConfigObject[],
  previous: readonly ConfigObject<Spec>[] = [],
): readonly ConfigObject<Spec>[] {
  const known = new Map(previous.map((object) => [objectKey(object), object]));
  const merged = ofKind<Spec>(kind, objects)
    .sort(byAgeAndName)
    .map((object) => keepObject(known.get(objectKey(object)), object));
  return keepList(previous, merged);
}

/** An object that merely moved to another line of its file is the same object. */
function keepObject<Spec>(previous: ConfigObject<Spec> | undefined, next: ConfigObject<Spec>): ConfigObject<Spec> {
  if (previous === undefined || previous.origin?.file !== next.origin?.file) return next;
  return keepIdentity(previous, { ...next, origin: previous.origin });
}

function ofKind<Spec>(kind: string, objects: readonly ConfigObject[]): ConfigObject<Spec>[] {
  return objects.filter((object): object is ConfigObject<Spec> => object.kind === kind);
}

function byAge(a: Service, b: Service): number {
  return a.createdAt - b.createdAt || compare(a.namespace, b.namespace) || compare(a.hostname, b.hostname);
}

function byAgeAndName({ metadata: a }: ConfigObject, { metadata: b }: ConfigObject): number {
  return a.createdAt - b.createdAt || compare(a.namespace, b.namespace) || compare(a.name, b.name);
}

/** By code units: the same order everywhere. */
function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

function sameParts(a: Snapshot, b: Snapshot): boolean {
  const parts: Snapshot = { ...b, version: a.version };
  return (Object.keys(parts) as (keyof Snapshot)[]).every((name) => a[name] === parts[name]);
}
