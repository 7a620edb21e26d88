/** WorkloadEntries as endpoints, and the index by which selectors find them. */
import { isIP } from "node:net";
import type { ConfigObject } from "#config/config-object.ts";
import type { WorkloadEntry } from "#config/kinds/workload-entry.ts";
import type { Endpoint } from "#model/endpoint.ts";

const TLS_MODE_LABEL = "security.istio.io/tlsMode";
const LOCALITY_LABEL = "istio-locality";
const WORKLOAD_NAME_LABEL = "service.istio.io/workload-name";
const AUTO_REGISTRATION_GROUP = "istio.io/autoRegistrationGroup";

/** A workload that services may select. */
export interface Workload {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly entry: WorkloadEntry;
}

/** Finds the workloads of a namespace that carry all of the given labels; no labels select none. */
export type WorkloadFinder = (namespace: string, selector: Readonly<Record<string, string>>) => readonly Workload[];

/** The workload of a WorkloadEntry object. Labels of the metadata count like those of the spec, and before them. */
export function workloadOf({ metadata, spec }: ConfigObject<WorkloadEntry>): Workload {
  const labels = { ...spec.labels, ...metadata.labels };
  const name = labels[WORKLOAD_NAME_LABEL] ?? metadata.annotations[AUTO_REGISTRATION_GROUP] ?? metadata.name;
  return { name, namespace: metadata.namespace, labels, entry: spec };
}

/** Indexes workloads by each of their labels, so that a selector looks only at those that share its rarest label. */
export function workloadFinder(workloads: readonly Workload[]): WorkloadFinder {
  const byLabel = Map.groupBy(
    workloads.flatMap((workload) => Object.entries(workload.labels).map((label) => ({ workload, label }))),
    ({ workload, label: [key, value] }) => indexKey(workload.namespace, key, value),
  );
  return (namespace, selector) => {
    const wanted = Object.entries(selector);
    const candidates = wanted
      .map(([key, value]) => byLabel.get(indexKey(namespace, key, value)) ?? [])
      .sort((a, b) => a.length - b.length)[0];
    return (candidates ?? [])
      .map(({ workload }) => workload)
      .filter(({ labels }) => wanted.every(([key, value]) => labels[key] === value));
  };
}

/** Whether the workload is found by an IP address, not by a name or a socket file. */
export function hasIpAddress({ entry }: Workload): boolean {
  return isIP(entry.address ?? "") !== 0;
}

/** The port the workload itself names, if it does. */
export function workloadPort({ entry }: Workload, name: string): number | undefined {
  const port = entry.ports !== undefined && Object.hasOwn(entry.ports, name) ? entry.ports[name] : undefined;
  return port === 0 ? undefined : port;
}

/** The endpoint of a workload with the given ports. */
export function endpointOf(workload: Workload, ports: Endpoint["ports"], clusterId: string): Endpoint {
  const { entry, labels } = workload;
  return {
    address: entry.address ?? "",
    ports,
    labels,
    namespace: workload.namespace,
    workloadName: workload.name,
    serviceAccount: entry.serviceAccount ?? "",
    tlsMode: tlsModeOf(workload),
    network: entry.network ?? "",
    locality: entry.locality || (labels[LOCALITY_LABEL] ?? "").replaceAll(".", "/"),
    clusterId,
    weight: entry.weight ?? 0,
    health: "healthy",
  };
}

/** Without a label of its own, a workload with an identity is taken to have a proxy of the mesh. */
function tlsModeOf({ entry, labels }: Workload): Endpoint["tlsMode"] {
  const label = labels[TLS_MODE_LABEL];
  if (label !== undefined) return label === "istio" ? "istio" : "disabled";
  return (entry.serviceAccount ?? "") === "" ? "disabled" : "istio";
}

function indexKey(namespace: string, key: string, value: string): string {
  return `${namespace}/${key}=${value}`;
}
