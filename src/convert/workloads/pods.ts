/** Kubernetes Pods as workloads, and how they are found. */

import type { Container, Pod, PodStatus } from "#config/kinds/pod/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { locatedLabels } from "#model/service/whereabouts.ts";
import { podPortName } from "#model/workload/pod-ports.ts";
import { labelledLocality, nodeLocality } from "./locality.ts";
import { podWorkloadName } from "./workload-name.ts";
import { labelledTlsMode, type Surroundings, type Workload } from "./workloads.ts";

/** A Pod object. */
export type PodObject = ConfigObject<Pod, PodStatus>;

/** A pod that is there, as a workload. */
export interface PodWorkload {
  readonly name: string;
  readonly workload: Workload;
  /** It takes requests: what selects pods without EndpointSlices selects only such. */
  readonly ready: boolean;
}

/** Finds the pods of a namespace that are behind addresses. */
export interface PodFinder {
  /** Also while it is not ready. */
  named(name: string): Workload | undefined;
  /** Only those that are ready: pods in a node's own network share its address. */
  at(address: string): Workload | undefined;
}

/** The workload of a pod. Without an address, or when it is done, it has an empty address and is not ready. */
export function podWorkload(pod: PodObject, node: ConfigObject | undefined, around: Surroundings): PodWorkload {
  const { metadata, spec, status = {} } = pod;
  const addresses = podAddresses(status);
  const [address = ""] = addresses;
  const locality = labelledLocality(metadata.labels) || nodeLocality(node);
  const network = around.networkOf(address, metadata.labels);
  const { nodeName = "" } = spec;
  const workload: Workload = {
    address,
    ports: podPorts(spec),
    labels: locatedLabels(metadata.labels, { clusterId: around.clusterId, locality, nodeName, network }),
    namespace: metadata.namespace,
    workloadName: podWorkloadName(metadata),
    serviceAccount: spec.serviceAccountName || "default",
    tlsMode: labelledTlsMode(metadata.labels),
    network,
    locality,
    clusterId: around.clusterId,
    weight: 0,
    health: "healthy",
    ...(addresses.length > 1 && { addresses }),
    ...(spec.subdomain && { podName: { hostname: spec.hostname || metadata.name, subdomain: spec.subdomain } }),
    ...(nodeName && { nodeName }),
  };
  return { name: metadata.name, workload, ready: address !== "" && isReady(pod) };
}

/** Finds pods among those given, which are of one namespace. */
export function podFinder(pods: readonly PodWorkload[]): PodFinder {
  const byName = new Map<string, Workload>();
  const byAddress = new Map<string, Workload>();
  for (const { name, workload, ready } of pods) {
    byName.set(name, workload);
    if (ready && !byAddress.has(workload.address)) byAddress.set(workload.address, workload);
  }
  return { named: (name) => byName.get(name), at: (address) => byAddress.get(address) };
}

/** Of several ports with one name the first counts, as for Kubernetes. */
function podPorts({ containers = [], initContainers = [] }: Pod): Readonly<Record<string, number>> {
  const sidecars = initContainers.filter(({ restartPolicy }) => restartPolicy === "Always");
  const ports = [...containers, ...sidecars].flatMap(namedPorts);
  return Object.fromEntries(ports.reverse());
}

function namedPorts({ ports = [] }: Container): [string, number][] {
  return ports
    .filter(({ name }) => name)
    .map(({ name = "", containerPort = 0, protocol }) => [podPortName(name, protocol), containerPort]);
}

function podAddresses({ podIP, podIPs = [] }: PodStatus): readonly string[] {
  const all = podIPs.flatMap(({ ip }) => ip || []);
  return podIP ? [podIP, ...all.filter((ip) => ip !== podIP)] : all;
}

function isReady({ metadata, status: { phase, conditions = [] } = {} }: PodObject): boolean {
  if (metadata.deleting === true || phase === "Failed" || phase === "Succeeded") return false;
  return conditions.some(({ type, status }) => type === "Ready" && status === "True");
}
