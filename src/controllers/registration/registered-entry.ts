/** WorkloadEntries of workloads that register themselves, as pure steps from what is there to what should be. */

import type { WorkloadEntry, WorkloadEntryStatus } from "#config/kinds/workload-entry/schema.ts";
import type { WorkloadGroup } from "#config/kinds/workload-group/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import {
  CONNECTED_AT,
  DISCONNECTED_AT,
  HEALTH_CHECKS,
  REGISTRATION_GROUP,
} from "#config/terms/registration-annotations.ts";
import { LOCALITY_LABEL } from "#config/terms/topology-labels.ts";
import { isRecord } from "#lib/json/is-record.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";

/** A WorkloadEntry object. */
export type EntryObject = ConfigObject<WorkloadEntry, WorkloadEntryStatus>;

const CONTROLLER = "istio.io/workloadController";
const HEALTHY = "Healthy";
/** The longest name that Kubernetes takes. */
const LONGEST_NAME = 253;

/** What a workload says of itself that decides whether and how it is registered. */
export interface Registration {
  readonly namespace: string;
  /** Name of its WorkloadEntry. */
  readonly name: string;
  /** The WorkloadGroup it joins; undefined for one whose entry exists before it comes. */
  readonly group: string | undefined;
}

/** How a proxy is registered; undefined for one that is not, as pods are not. */
export function registrationOf(proxy: MeshProxy): Registration | undefined {
  const { AUTO_REGISTER_GROUP: group, WORKLOAD_ENTRY: entry, NETWORK: network } = proxy.metadata;
  const [address] = proxy.addresses;
  if (typeof group === "string" && group !== "" && address !== undefined) {
    const parts = [group, address.replaceAll(":", "-"), ...(typeof network === "string" && network ? [network] : [])];
    return { namespace: proxy.namespace, name: parts.join("-").slice(-LONGEST_NAME), group };
  }
  if (typeof entry !== "string" || entry === "") return undefined;
  return { namespace: proxy.namespace, name: entry, group: undefined };
}

/** The entry of a workload that joins a group. Labels of the workload go before those of the group, and these before its template's. */
export function entryOfGroup(
  { metadata, spec }: ConfigObject<WorkloadGroup>,
  proxy: MeshProxy,
  { name, namespace }: Registration,
): EntryObject {
  const { [LOCALITY_LABEL]: _, ...own } = proxy.labels;
  const labels = { ...spec.template.labels, ...spec.metadata?.labels, ...own };
  const { NETWORK: network, PROXY_CONFIG: config } = proxy.metadata;
  const isProbed = isRecord(config) && isRecord(config.readinessProbe);
  return {
    kind: "WorkloadEntry",
    metadata: {
      name,
      namespace,
      labels,
      annotations: {
        [REGISTRATION_GROUP]: metadata.name,
        ...spec.metadata?.annotations,
        ...(isProbed && { [HEALTH_CHECKS]: "true" }),
      },
      createdAt: 0,
      controller: { kind: "WorkloadGroup", name: metadata.name },
    },
    spec: {
      ...spec.template,
      address: proxy.addresses[0] ?? "",
      labels,
      ...(typeof network === "string" && network && { network }),
      // Its agent has read the labels for it: in a label dots stand for slashes.
      ...(proxy.nodeLocality && { locality: proxy.nodeLocality }),
    },
    origin: undefined,
  };
}

/** Why the proxy cannot be the workload of the entry; undefined when it can. */
export function refusalOf({ verified }: MeshProxy, { metadata, spec }: EntryObject): string | undefined {
  if (verified === undefined) return "registration needs a proved identity";
  if (verified.namespace !== metadata.namespace) {
    return `the entry is in namespace "${metadata.namespace}", the workload in "${verified.namespace}"`;
  }
  const { serviceAccount = "" } = spec;
  if (serviceAccount === "" || serviceAccount === verified.serviceAccount) return undefined;
  return `the entry is for service account "${serviceAccount}", the workload has "${verified.serviceAccount}"`;
}

/** Whether the agent of the workload may report its health. */
export function takesHealth({ metadata }: EntryObject): boolean {
  return Object.hasOwn(metadata.annotations, HEALTH_CHECKS);
}

/** When something happened, as annotations have it. */
export type Instant = string;

/** The entry while its workload is connected to `controller`; undefined when it is connected elsewhere since. */
export function connectedEntry(entry: EntryObject, controller: string, at: Instant): EntryObject | undefined {
  const { [DISCONNECTED_AT]: left = "", [CONNECTED_AT]: before = "" } = entry.metadata.annotations;
  if (isLater(left, at) || isLater(before, at)) return undefined;
  return annotated(entry, { [CONTROLLER]: controller, [CONNECTED_AT]: at, [DISCONNECTED_AT]: undefined });
}

/** The entry after its workload left `controller`, where it came at `connectedAt`; undefined when it came back since. */
export function disconnectedEntry(
  entry: EntryObject,
  controller: string,
  { connectedAt, at }: { readonly connectedAt: Instant; readonly at: Instant },
): EntryObject | undefined {
  const { [CONTROLLER]: owner, [CONNECTED_AT]: last = "" } = entry.metadata.annotations;
  if (owner !== controller || isLater(last, connectedAt)) return undefined;
  return annotated(entry, { [CONNECTED_AT]: undefined, [DISCONNECTED_AT]: at });
}

/** What becomes of an entry whose workload is gone for `graceMs`: unregistered, or its health is unknown; undefined: nothing yet. */
export function expiredEntry(entry: EntryObject, now: number, graceMs: number): EntryObject | "removed" | undefined {
  const {
    [REGISTRATION_GROUP]: group = "",
    [CONNECTED_AT]: here,
    [DISCONNECTED_AT]: left = "",
  } = entry.metadata.annotations;
  const gone = Date.parse(left);
  if (here !== undefined || Number.isNaN(gone) || now - gone < graceMs) return undefined;
  if (group !== "") return "removed";
  const conditions = entry.status?.conditions ?? [];
  const others = conditions.filter(({ type }) => type !== HEALTHY);
  return others.length === conditions.length
    ? undefined
    : { ...entry, status: { ...entry.status, conditions: others } };
}

/** The entry with what its agent reported: healthy, or what is wrong. */
export function withHealth(entry: EntryObject, problem: string | undefined, at: Instant): EntryObject {
  const others = (entry.status?.conditions ?? []).filter(({ type }) => type !== HEALTHY);
  const times = { lastProbeTime: at, lastTransitionTime: at };
  const healthy = { type: HEALTHY, status: problem === undefined ? "True" : "False", ...times };
  const condition = problem === undefined ? healthy : { ...healthy, message: problem };
  return { ...entry, status: { ...entry.status, conditions: [...others, condition] } };
}

/** Whether the entry is of a workload that came to `controller` last. */
export function isControlledBy({ metadata }: EntryObject, controller: string): boolean {
  return metadata.annotations[CONTROLLER] === controller;
}

/** Where and since when the workload of the entry is connected; undefined when it is not. */
export function controllerOf({ metadata }: EntryObject): { controller: string; connectedAt: Instant } | undefined {
  const { [CONTROLLER]: controller = "", [CONNECTED_AT]: connectedAt = "" } = metadata.annotations;
  return controller === "" || connectedAt === "" ? undefined : { controller, connectedAt };
}

function annotated(entry: EntryObject, changes: Readonly<Record<string, string | undefined>>): EntryObject {
  const all = Object.entries({ ...entry.metadata.annotations, ...changes });
  const annotations = Object.fromEntries(all.filter((pair): pair is [string, string] => pair[1] !== undefined));
  return { ...entry, metadata: { ...entry.metadata, annotations } };
}

function isLater(a: Instant, b: Instant): boolean {
  return Date.parse(a) > Date.parse(b);
}
