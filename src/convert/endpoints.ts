/** The endpoints of services: workloads they select, workloads they list, or their own name. */
import type { ConfigObject } from "#config/config-object.ts";
import type { Service as ServiceSpec } from "#config/kinds/service.ts";
import type { ServiceEntry } from "#config/kinds/service-entry.ts";
import type { Service } from "#model/service.ts";
import { type ClusterlessEndpoint, endpointOf, hasIpAddress, type Workload, workloadPort } from "./workloads.ts";

/** Endpoints of a Kubernetes Service: the workloads it selects, by IP address only, as pods have one. */
export function kubernetesEndpoints(spec: ServiceSpec, selected: readonly Workload[]): ClusterlessEndpoint[] {
  return selected.filter(hasIpAddress).map((workload) => endpointOf(workload, targetPorts(spec.ports ?? [], workload)));
}

/** Endpoints of one host of a ServiceEntry. */
export function serviceEntryEndpoints(
  { spec, metadata }: ConfigObject<ServiceEntry>,
  service: Service,
  selected: readonly Workload[],
): ClusterlessEndpoint[] {
  if (service.resolution === "passthrough") return [];
  const byName = service.resolution !== "static";
  const workloads =
    spec.workloadSelector === undefined
      ? listedWorkloads(spec, metadata.namespace, byName ? service.hostname : undefined)
      : selected.filter((workload) => byName || hasIpAddress(workload) || isSocket(workload));
  return workloads.map((workload) => endpointOf(workload, entryPorts(spec, workload)));
}

/** A service without any is found by its own name, if it is found by name. */
function listedWorkloads(spec: ServiceEntry, namespace: string, ownName: string | undefined): Workload[] {
  const listed = spec.endpoints ?? [];
  const entries = listed.length === 0 && ownName !== undefined ? [{ address: ownName }] : listed;
  return entries.map((entry) => ({ name: "", namespace, labels: entry.labels ?? {}, entry }));
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
