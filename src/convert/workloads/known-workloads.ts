/** Workloads by themselves, under the names by which their proxies are told from others. */

import { type KnownWorkload, type WorkloadKey, workloadKey } from "#model/workload/workload.ts";
import { keepIdentity } from "../identity/keep-identity.ts";
import { changedMap, madeFrom, memoized } from "../identity/memo.ts";
import type { PodWorkload } from "./pods.ts";
import type { IndexedWorkload, Workload } from "./workloads.ts";

/** A workload with the key under which it is known. */
export interface NamedWorkload {
  readonly key: WorkloadKey;
  readonly workload: KnownWorkload;
}

/** A pod goes by its name. */
export const namedPod = memoized(({ name, workload }: PodWorkload): NamedWorkload => {
  const { namespace, clusterId } = workload;
  const key = workloadKey("pod", { clusterId, namespace, name });
  return { key, workload: known("pod", workload) };
});

/** The same under its address, once it is ready. */
export const placedPod = memoized(({ workload, ready }: PodWorkload): NamedWorkload | undefined => {
  const { namespace, clusterId, address } = workload;
  const key = workloadKey("pod-at", { clusterId, namespace, name: address });
  return ready ? { key, workload: known("pod", workload) } : undefined;
});

/** A WorkloadEntry goes by its address. */
export const namedEntry = memoized(({ workload }: IndexedWorkload, byApiServer: boolean): NamedWorkload => {
  const { namespace, clusterId, address } = workload;
  const key = workloadKey("entry", { clusterId, namespace, name: address });
  return { key, workload: known(byApiServer ? "machine" : "stand-in", workload) };
});

function known(kind: KnownWorkload["kind"], { labels, ports }: Workload): KnownWorkload {
  return { kind, labels, ports };
}

/** All of them by key; the same as before when they are. Of several entries with one address the first counts. */
export const knownWorkloads = madeFrom(
  (previous: Known, after: readonly NamedWorkload[], before: readonly NamedWorkload[] | undefined): Known => {
    const entryOf = ({ key, workload }: NamedWorkload) => [key, keepIdentity(previous.get(key), workload)] as const;
    const changed = before && changedMap(previous, { before, after }, entryOf);
    if (changed !== undefined) return changed;
    const next = new Map(after.toReversed().map(entryOf));
    const isSame = next.size === previous.size && [...next].every(([key, known]) => previous.get(key) === known);
    return isSame ? previous : next;
  },
);

type Known = ReadonlyMap<WorkloadKey, KnownWorkload>;
