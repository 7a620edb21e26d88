/** The endpoints of services: workloads they select, workloads they list, or their own name. */
import type { ConfigObject } from "#config/config-object.ts";
import type { Service as ServiceSpec } from "#config/kinds/service.ts";
import type { ServiceEntry } from "#config/kinds/service-entry.ts";
import type { Endpoint } from "#model/endpoint.ts";
import type { Service } from "#model/service.ts";
import { endpointOf, hasIpAddress, type Workload, type WorkloadFinder, workloadPort } from "./workloads.ts";

/** What endpoints depend on besides their service. */
export interface EndpointContext {
  readonly find: WorkloadFinder;
  readonly clusterId: string;
}

/** Endpoints of a Kubernetes Service: the workloads it selects, by address only, as pods would be. */
export function kubernetesEndpoints(object: ConfigObject<ServiceSpec>, context: EndpointContext): Endpoint[] {
  const { selector = {}, ports = [] } = object.spec;
  return context
    .find(object.metadata.namespace, selector)
    .filter(hasIpAddress)
    .map((workload) => endpointOf(workload, targetPorts(ports, workload), context.clusterId));
}

/** Endpoints of one host of a ServiceEntry. */
export function serviceEntryEndpoints(
  object: ConfigObject<ServiceEntry>,
  service: Service,
  context: EndpointContext,
): Endpoint[] {
  const { spec, metadata } = object;
  const byName = service.resolution === "dns" || service.resolution === "dns-round-robin";
  if (service.resolution === "passthrough") return [];
  if (spec.workloadSelector !== undefined) {
    return context
      .find(metadata.namespace, spec.workloadSelector.labels ?? {})
      .filter((workload) => byName || hasIpAddress(workload) || isSocket(workload))
      .map((workload) => endpointOf(workload, entryPorts(spec, workload), context.clusterId));
  }
  const listed = (spec.endpoints ?? []).map((entry) => ({
    name: "",
    namespace: metadata.namespace,
    labels: entry.labels ?? {},
    entry,
  }));
  const own = { name: "", namespace: metadata.namespace, labels: {}, entry: { address: service.hostname } };
  return (listed.length === 0 && byName ? [own] : listed).map((workload) =>
    endpointOf(workload, entryPorts(spec, workload), context.clusterId),
  );
}

/** A number is a port of the workload unless the workload names another; a name has to be known to the workload. */
function targetPorts(ports: NonNullable<ServiceSpec["ports"]>, workload: Workload): Record<string, number> {
  const targets = ports.map(({ name = "", port, targetPort = port }): [string, number | undefined] =>
    typeof targetPort === "string"
      ? [name, workloadPort(workload, targetPort)]
      : [name, workloadPort(workload, name) ?? targetPort],
  );
  return Object.fromEntries(targets.filter((target): target is [string, number] => target[1] !== undefined));
}

function entryPorts(spec: ServiceEntry, workload: Workload): Record<string, number> {
  return Object.fromEntries(
    (spec.ports ?? []).map(({ name, number, targetPort }) => [
      name,
      isSocket(workload) ? 0 : (workloadPort(workload, name) ?? (targetPort || number)),
    ]),
  );
}

function isSocket({ entry }: Workload): boolean {
  return (entry.address ?? "").startsWith("unix://");
}
