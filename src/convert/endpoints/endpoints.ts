/** The endpoints of services: workloads they select, workloads they list, or their own name. */

import type { Service as ServiceSpec } from "#config/kinds/service/schema.ts";
import type { ServiceEntry } from "#config/kinds/service-entry/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Endpoint } from "#model/service/endpoint.ts";
import type { Service } from "#model/service/service.ts";
import { podPortName } from "#model/workload/pod-ports.ts";
import {
  endpointOf,
  hasIpAddress,
  type Surroundings,
  type Workload,
  workloadOfEntry,
  workloadPort,
} from "../workloads/workloads.ts";

/**
 * Endpoints of a Kubernetes Service: the workloads it selects, by IP address as pods have one, or by their network. Those that
 * know none of its ports by name do not serve it.
 */
export function kubernetesEndpoints({ ports = [] }: ServiceSpec, selected: readonly Workload[]): Endpoint[] {
  const endpoints = selected.filter(isPlaced).map((workload) => endpointOf(workload, targetPorts(ports, workload)));
  return ports.length === 0 ? endpoints : endpoints.filter((endpoint) => Object.keys(endpoint.ports).length > 0);
}

/** Endpoints of one host of a ServiceEntry. */
export function serviceEntryEndpoints(
  { spec, metadata }: ConfigObject<ServiceEntry>,
  service: Service,
  { selected, around }: { readonly selected: readonly Workload[]; readonly around: Surroundings },
): Endpoint[] {
  if (service.resolution === "passthrough" && spec.workloadSelector === undefined) return [];
  const byName = service.resolution === "dns" || service.resolution === "dns-round-robin";
  const listed = () => listedEntries(spec, byName ? service.hostname : undefined);
  const workloads =
    spec.workloadSelector === undefined
      ? listed().map((entry) => workloadOfEntry(entry, { name: "", namespace: metadata.namespace }, around))
      : selected.filter((workload) => byName || isPlaced(workload) || isSocket(workload));
  const servicePorts = Object.fromEntries((spec.ports ?? []).map(({ name, number }) => [name, number]));
  const endpoints = workloads.map((workload) => ({
    ...endpointOf(workload, entryPorts(spec, workload)),
    servicePorts,
  }));
  // In Istio each address is a service of its own, and the endpoints of all of them are joined: weights are as with these.
  return Array.from({ length: Math.max(1, service.addresses.length) }, () => endpoints).flat();
}

/** A service without any is found by its own name, if it is found by name. */
function listedEntries({ endpoints = [] }: ServiceEntry, ownName: string | undefined) {
  return endpoints.length === 0 && ownName !== undefined ? [{ address: ownName }] : endpoints;
}

/** A number is a port of the workload unless the workload names another; a name has to be known to the workload. */
function targetPorts(ports: NonNullable<ServiceSpec["ports"]>, workload: Workload): Record<string, number> {
  const targets = ports.map(({ name = "", port, protocol, targetPort = port }): [string, number | undefined] =>
    typeof targetPort === "string"
      ? [name, workloadPort(workload, podPortName(targetPort, protocol)) ?? workloadPort(workload, targetPort)]
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

/** No name has to be looked up for it: there is an address, or the gateway of its network leads there. */
function isPlaced(workload: Workload): boolean {
  return hasIpAddress(workload) || workload.address === "";
}

function isSocket({ address }: Workload): boolean {
  return address.startsWith("unix://");
}
