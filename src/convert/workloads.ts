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

/** A set of labels with the keys under which an index has it: making these anew for each snapshot would be half its cost. */
export interface LabelSet {
  readonly labels: Readonly<Record<string, string>>;
  readonly places: readonly string[];
}

/** An endpoint as the objects know it, which do not say in which cluster they are. */
export type ClusterlessEndpoint = Omit<Endpoint, "clusterId">;

/** Finds the workloads that carry all of the given labels; no labels select none. */
export type WorkloadFinder = (selector: LabelSet) => readonly Workload[];

/** A workload as an index wants it. */
export interface IndexedWorkload extends LabelSet {
  readonly workload: Workload;
}

/** Labels within a namespace. */
export function labelSet(namespace: string, labels: Readonly<Record<string, string>> = {}): LabelSet {
  return { labels, places: Object.entries(labels).map(([key, value]) => `${namespace}/${key}=${value}`) };
}

/** The workload of a WorkloadEntry object. Labels of the metadata count like those of the spec, and before them. */
export function workloadOf({ metadata, spec }: ConfigObject<WorkloadEntry>): Workload {
  const labels = { ...spec.labels, ...metadata.labels };
  const name = labels[WORKLOAD_NAME_LABEL] ?? metadata.annotations[AUTO_REGISTRATION_GROUP] ?? metadata.name;
  return { name, namespace: metadata.namespace, labels, entry: spec };
}

/** Indexes workloads by each of their labels, so that a selector looks only at those that share its rarest label. */
export function workloadFinder(workloads: readonly IndexedWorkload[]): WorkloadFinder {
  const index = new Map<string, Workload[]>();
  for (const { workload, places } of workloads) {
    for (const place of places) {
      const bucket = index.get(place);
      if (bucket === undefined) index.set(place, [workload]);
      else bucket.push(workload);
    }
  }
  return ({ labels, places }) => {
    const [rarest = []] = places.map((place) => index.get(place) ?? []).sort((a, b) => a.length - b.length);
    return places.length === 1 ? rarest : rarest.filter((workload) => carries(workload, labels));
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

/** The endpoint of a workload with the given ports, in no cluster yet. */
export function endpointOf(workload: Workload, ports: Endpoint["ports"]): ClusterlessEndpoint {
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

function carries(workload: Workload, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(labels).every(([key, value]) => workload.labels[key] === value);
}
