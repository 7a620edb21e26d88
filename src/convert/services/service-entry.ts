/** ServiceEntries to services of the model: one for each host. */
import { isIPv4, isIPv6 } from "node:net";
import type { ServiceEntry, ServiceEntryStatus } from "#config/kinds/service-entry/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { refusesAutoAddress } from "#config/terms/auto-address.ts";
import { parseProtocol } from "#config/terms/protocol.ts";
import { defaultExportTo } from "#config/terms/visibility.ts";
import { CANONICAL_NAME, CANONICAL_REVISION, canonicalService } from "#model/labels/labels.ts";
import type { Resolution, Service } from "#model/service/service.ts";
import { labelledTraits, type ServiceContext, trafficDistribution } from "./kubernetes-service.ts";

const RESOLUTIONS: Readonly<Record<NonNullable<ServiceEntry["resolution"]>, Resolution>> = {
  NONE: "passthrough",
  STATIC: "static",
  DNS: "dns",
  DNS_ROUND_ROBIN: "dns-round-robin",
  DYNAMIC_DNS: "dynamic-dns",
};

/** A ServiceEntry object. */
export type ServiceEntryObject = ConfigObject<ServiceEntry, ServiceEntryStatus>;

/** The services that a ServiceEntry stands for. */
export function serviceEntryServices(
  { metadata, spec }: ConfigObject<ServiceEntry>,
  { mesh, features }: ServiceContext,
): Service[] {
  const meshExternal = spec.location !== "MESH_INTERNAL";
  const resolution = RESOLUTIONS[spec.resolution ?? "NONE"];
  const distribution = trafficDistribution(undefined, metadata.annotations);
  const shared = {
    namespace: metadata.namespace,
    registry: "External" as const,
    addresses: (spec.addresses ?? []).map(withoutFullMask),
    autoAddress: undefined,
    ports: (spec.ports ?? []).map(({ name, number, protocol, targetPort }) => ({
      name,
      port: number,
      protocol: parseProtocol(protocol ?? ""),
      ...(resolution === "passthrough" && targetPort && { targetPort }),
    })),
    resolution,
    meshExternal,
    headless: false,
    labels: meshExternal && features.canonicalExternal ? withCanonicalName(metadata) : metadata.labels,
    exportTo: spec.exportTo?.length ? spec.exportTo : defaultExportTo(mesh.defaultServiceExportTo),
    subjectAltNames: spec.subjectAltNames ?? [],
    createdAt: metadata.createdAt,
    ...(spec.workloadSelector && { selector: spec.workloadSelector.labels ?? {} }),
    ...(distribution && { trafficDistribution: distribution }),
    ...labelledTraits(metadata.labels, features),
  };
  return spec.hosts.map((host) => ({ hostname: host, name: host, ...shared }));
}

/** Metrics call what is outside after its entry, unless it says itself what it is. */
function withCanonicalName({ name, labels }: ConfigObject["metadata"]): Readonly<Record<string, string>> {
  if (labels[CANONICAL_NAME] !== undefined && labels[CANONICAL_REVISION] !== undefined) return labels;
  const [service, revision] = canonicalService(labels, name);
  return { ...labels, [CANONICAL_NAME]: service, [CANONICAL_REVISION]: revision };
}

/** Whether hosts of this entry get an address of our own, so that clients can be told apart by it. */
export function wantsAutoAddress({ metadata, spec }: ConfigObject<ServiceEntry>): boolean {
  return (spec.resolution ?? "NONE") !== "NONE" && (spec.addresses ?? []).length === 0 && !refusesAutoAddress(metadata);
}

/** The service with the addresses that a controller wrote into the status for its host. */
export function withAllocated(service: Service, object: ServiceEntryObject): Service {
  if (!wantsAutoAddress(object)) return service;
  const own = (object.status?.addresses ?? []).filter(({ host }) => host === service.hostname);
  const autoAddress = own.findLast(({ value = "" }) => isIPv4(value))?.value;
  const autoAddress6 = own.findLast(({ value = "" }) => isIPv6(value))?.value;
  return { ...service, autoAddress, ...(autoAddress6 && { autoAddress6 }) };
}

/** A network of one address is that address. */
function withoutFullMask(address: string): string {
  return address.replace(address.includes(":") ? /\/128$/ : /\/32$/, "");
}
