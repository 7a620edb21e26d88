/** Patches of clusters. */
import { clone } from "@bufbuild/protobuf";
import { type Cluster, ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { type TransportSocket, TransportSocketSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import { matchesCluster } from "./match.ts";
import { mergedAny, mergeInto } from "./merge.ts";
import type { Patch } from "./patch.ts";

/** What becomes of a cluster, as far as its name tells. */
export interface ClusterFate {
  /** Undefined when it is removed. */
  readonly name: string | undefined;
  readonly isTouched: boolean;
}

/** Follows the patches without the cluster: which of them fit depends on its name alone, and so does what it is called then. */
export function clusterFate(patches: readonly Patch<"CLUSTER">[], name: string, hosts: readonly string[]): ClusterFate {
  let fate = { name, isTouched: false };
  for (const { operation, match, value } of patches) {
    if (!matchesCluster(match.cluster, fate.name, hosts)) continue;
    if (operation === "REMOVE") return { name: undefined, isTouched: true };
    if (operation !== "MERGE") continue;
    const isRenamed = value?.transportSocket === undefined && value?.name;
    fate = { name: isRenamed || fate.name, isTouched: true };
  }
  return fate;
}

/** Merges what fits into the cluster, in order; false when it is removed. */
export function patchCluster(
  patches: readonly Patch<"CLUSTER">[],
  cluster: Cluster,
  hosts: readonly string[],
): boolean {
  for (const { operation, match, value } of patches) {
    if (!matchesCluster(match.cluster, cluster.name, hosts)) continue;
    if (operation === "REMOVE") return false;
    if (operation !== "MERGE" || value === undefined) continue;
    if (value.transportSocket === undefined) mergeInto(ClusterSchema, cluster, value);
    else mergeTransportSocket(cluster, value.transportSocket);
  }
  return true;
}

/**
 * A patch with a transport socket changes nothing but that. One of the same name gets its settings merged, among those
 * that are chosen by endpoint too; otherwise it is put in place, unless there are some to choose from.
 */
function mergeTransportSocket(cluster: Cluster, patch: TransportSocket): void {
  const choices = cluster.transportSocketMatches.flatMap(({ transportSocket }) => transportSocket ?? []);
  const hasChoice = cluster.transportSocketMatches.length > 0;
  const known = hasChoice ? choices : cluster.transportSocket === undefined ? [] : [cluster.transportSocket];
  const same = known.find(({ name }) => name === patch.name);
  if (same !== undefined) mergeSocketConfig(same, patch);
  else if (!hasChoice) cluster.transportSocket = clone(TransportSocketSchema, patch);
}

/** Merges the settings of a transport socket of the same name. */
export function mergeSocketConfig(socket: TransportSocket, patch: TransportSocket): void {
  if (socket.configType.case !== "typedConfig" || patch.configType.case !== "typedConfig") return;
  const value = mergedAny(socket.configType.value, patch.configType.value);
  if (value !== undefined) socket.configType = { case: "typedConfig", value };
}
