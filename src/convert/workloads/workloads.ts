/** Workloads, whatever they run on, as endpoints of services; and the index by which selectors find them. */
import { isIP } from "node:net";
import type { WorkloadEntry, WorkloadEntryStatus } from "#config/kinds/workload-entry/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { HEALTH_CHECKS, REGISTRATION_GROUP } from "#config/terms/registration-annotations.ts";
import { parseGoBool } from "#lib/go/go-bool.ts";
import { TLS_MODE, WORKLOAD_NAME } from "#model/labels/labels.ts";
import type { Endpoint } from "#model/service/endpoint.ts";
import { locatedLabels } from "#model/service/whereabouts.ts";
import { labelledLocality } from "./locality.ts";
import type { NetworkOf } from "./networks.ts";

/** A workload that services may select, or that a ServiceEntry lists: an endpoint but for the ports that lead to it. */
export interface Workload extends Omit<Endpoint, "ports" | "servicePorts"> {
  /** Ports by the names that the workload itself gives them. */
  readonly ports: Readonly<Record<string, number>>;
}

/** Where workloads are, as far as they do not say themselves. */
export interface Surroundings {
  readonly clusterId: string;
  readonly networkOf: NetworkOf;
  /** What entries that name no network are labelled with: as in Istio, only those of further clusters are in that of theirs. */
  readonly networkOfEntry: NetworkOf;
}

/** A set of labels with the keys under which an index has it: making these anew for each snapshot would be half its cost. */
export interface LabelSet {
  readonly labels: Readonly<Record<string, string>>;
  readonly places: readonly string[];
}

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
export function workloadOf({ metadata, spec }: ConfigObject<WorkloadEntry>, around: Surroundings): Workload {
  const labels = { ...spec.labels, ...metadata.labels };
  const name = metadata.annotations[REGISTRATION_GROUP] ?? labels[WORKLOAD_NAME] ?? metadata.name;
  return workloadOfEntry({ ...spec, labels }, { name, namespace: metadata.namespace }, around);
}

/** The workload that an entry describes; one that a ServiceEntry lists has no name. */
export function workloadOfEntry(
  entry: WorkloadEntry,
  { name, namespace }: { readonly name: string; readonly namespace: string },
  { clusterId, networkOfEntry }: Surroundings,
): Workload {
  const { address = "", network = "", labels = {} } = entry;
  const locality = entry.locality || labelledLocality(labels);
  const place = { clusterId, locality, nodeName: "", network: network || networkOfEntry(address, labels) };
  return {
    address,
    ports: entry.ports ?? {},
    labels: locatedLabels(labels, place),
    namespace,
    workloadName: name,
    serviceAccount: entry.serviceAccount ?? "",
    tlsMode: tlsModeOf(labels, entry.serviceAccount),
    network,
    locality,
    clusterId,
    weight: entry.weight ?? 0,
    health: "unknown",
  };
}

/** Whether a WorkloadEntry takes part: one whose agent checks its health only once that is known to be good. */
export function isHealthy({ metadata, status }: ConfigObject<WorkloadEntry>): boolean {
  if (!isTrue(metadata.annotations[HEALTH_CHECKS])) return true;
  const { conditions = [] } = (status ?? {}) as WorkloadEntryStatus;
  return conditions.find(({ type }) => type === "Healthy")?.status?.toLowerCase() === "true";
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
export function hasIpAddress({ address }: Workload): boolean {
  return isIP(address) !== 0;
}

/** The port the workload itself names, if it does. */
export function workloadPort({ ports }: Workload, name: string): number | undefined {
  return (Object.hasOwn(ports, name) && ports[name]) || undefined;
}

/** The endpoint of a workload with the given ports. */
export function endpointOf(workload: Workload, ports: Endpoint["ports"]): Endpoint {
  return { ...workload, ports };
}

/** Without a label of its own, a workload with an identity is taken to have a proxy of the mesh. */
function tlsModeOf(labels: Readonly<Record<string, string>>, serviceAccount = ""): Endpoint["tlsMode"] {
  return labels[TLS_MODE] === undefined && serviceAccount !== "" ? "istio" : labelledTlsMode(labels);
}

/** What the labels of a workload say about mutual TLS. */
export function labelledTlsMode(labels: Readonly<Record<string, string>>): Endpoint["tlsMode"] {
  return labels[TLS_MODE] === "istio" ? "istio" : "disabled";
}

function isTrue(annotation: string | undefined): boolean {
  return parseGoBool(annotation ?? "") ?? false;
}

function carries(workload: Workload, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(labels).every(([key, value]) => workload.labels[key] === value);
}
