/**
 * Entries that nobody sees to any more: their workload left while no control plane looked, or the one that it was connected
 * to is gone. One replica at a time looks for them.
 */
import type { ConfigObject } from "#config/schema/config-object.ts";
import { sleep } from "#lib/async/sleep.ts";
import { refusalText } from "#lib/kubernetes/missing-right.ts";
import type { Logger } from "#lib/log/log.ts";
import type { Source, WorkloadEntries } from "#model/ports.ts";
import { controllerOf, disconnectedEntry, type EntryObject, expiredEntry } from "./registered-entry.ts";

export interface LeftoverOptions {
  readonly source: Source;
  readonly entries: WorkloadEntries;
  /** Where control planes run. */
  readonly namespace: string;
  /** The pod of this one; empty outside of Kubernetes. */
  readonly podName: string;
  /** How long a workload may be away. */
  readonly graceMs: number;
  readonly now: () => number;
  readonly log: Logger;
}

/** Between two looks, as a multiple of the grace period. */
const LOOKS = 10;

/** Looks until the signal aborts. */
export async function removeLeftovers(options: LeftoverOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await removeOnce(options);
    await sleep(options.graceMs * LOOKS, signal);
  }
}

/** One look at all entries. */
export async function removeOnce(options: LeftoverOptions): Promise<void> {
  const { source, entries, log } = options;
  for (const entry of source.objects().filter(isEntry)) {
    const next = nextOf(entry, options);
    if (next === undefined) continue;
    const { name, namespace } = entry.metadata;
    try {
      if (next === "removed") await entries.remove(entry);
      else await entries.put(next, entry);
      log.info(next === "removed" ? "a leftover WorkloadEntry was removed" : "a WorkloadEntry was left", {
        namespace,
        name,
      });
    } catch (problem) {
      log.warn("a leftover WorkloadEntry stays", { namespace, name, reason: refusalText(problem) });
    }
  }
}

/** What becomes of an entry; undefined: nothing. */
function nextOf(entry: EntryObject, options: LeftoverOptions): EntryObject | "removed" | undefined {
  const { now, graceMs } = options;
  const connection = controllerOf(entry);
  if (connection !== undefined && isGone(connection.controller, options)) {
    const at = new Date(now()).toISOString();
    return disconnectedEntry(entry, connection.controller, { connectedAt: connection.connectedAt, at });
  }
  return expiredEntry(entry, now(), graceMs);
}

/** Pods tell only where our own is among them. */
function isGone(controller: string, { source, namespace, podName }: LeftoverOptions): boolean {
  const pods = source.objects().filter(({ kind, metadata }) => kind === "Pod" && metadata.namespace === namespace);
  const names = new Set(pods.map(({ metadata }) => metadata.name));
  return names.has(podName) && !names.has(controller);
}

function isEntry(object: ConfigObject): object is EntryObject {
  return object.kind === "WorkloadEntry";
}
