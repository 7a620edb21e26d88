/** Which Sidecar a proxy is under. */

import type { Sidecar } from "#config/kinds/sidecar/schema.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { oldestFirst } from "#config/terms/precedence.ts";
import { hasLabels } from "#model/labels/labels.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { BLACK_HOLE_CLUSTER, outboundCluster, PASSTHROUGH_CLUSTER } from "../names/names.ts";
import type { Workload } from "../policies/attachment.ts";
import { derived } from "../recipes/indexes.ts";

/** A Sidecar as it was written. */
export type SidecarObject = ConfigObject<Sidecar>;

/**
 * The Sidecar of the workload's namespace that selects it, else the one of the namespace without a selector, else that of
 * the root namespace; of several the oldest.
 */
export function sidecarFor({ sidecars, mesh }: Snapshot, workload: Workload): SidecarObject | undefined {
  if (sidecars.length === 0) return undefined;
  const byNamespace = inOrder("", sidecars);
  const isFor = ({ spec }: SidecarObject) => hasLabels(workload.labels, spec.workloadSelector?.labels);
  const ofRoot = byNamespace.get(mesh.rootNamespace)?.find(({ spec }) => spec.workloadSelector === undefined);
  return byNamespace.get(workload.namespace)?.find(isFor) ?? ofRoot;
}

/** Those with a selector first, then the oldest. */
const inOrder = derived((_: string, sidecars: readonly SidecarObject[]) => {
  const rank = ({ spec }: SidecarObject) => (spec.workloadSelector === undefined ? 1 : 0);
  const sorted = [...sidecars].sort((a, b) => rank(a) - rank(b) || oldestFirst(a, b));
  return Map.groupBy(sorted, ({ metadata }) => metadata.namespace);
});

/** The Sidecar of a view, which knows it by its key; empty is none. */
export function sidecarNamed({ sidecars }: Pick<Snapshot, "sidecars">, key: string): SidecarObject | undefined {
  return key === "" ? undefined : byKey("", sidecars).get(key);
}

const byKey = derived(
  (_: string, sidecars: readonly SidecarObject[]) => new Map(sidecars.map((sidecar) => [objectKey(sidecar), sidecar])),
);

/** The cluster for traffic to hosts that no service has: on as it came, to the proxy that the Sidecar names, or nowhere. */
export function unknownTarget({ mesh }: Pick<Snapshot, "mesh">, sidecar: SidecarObject | undefined): string {
  const policy = sidecar?.spec.outboundTrafficPolicy;
  const { mode } = policy ?? mesh.outboundTrafficPolicy;
  if (mode !== "ALLOW_ANY") return BLACK_HOLE_CLUSTER;
  const { host, port, subset } = policy?.egressProxy ?? {};
  return host === undefined ? PASSTHROUGH_CLUSTER : outboundCluster(host, port?.number ?? 0, subset);
}
