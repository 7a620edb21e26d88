/** Addresses for hosts of ServiceEntries that have none, written into the status so that everyone uses the same. */
import { type ConfigObject, objectKey } from "#config/config-object.ts";
import { isWildcard } from "#config/host.ts";
import type { ServiceEntry, ServiceEntryStatus } from "#config/kinds/service-entry.ts";
import { wantsAutoAddress } from "#convert/service-entry.ts";
import { type KubernetesApi, MERGE_PATCH } from "#lib/kubernetes/api-client.ts";
import { refusalText } from "#lib/kubernetes/missing-right.ts";
import { pathOf, type ResourceType } from "#lib/kubernetes/resource-types.ts";
import type { Logger } from "#lib/log.ts";
import type { Source } from "#model/ports.ts";
import { WorkQueue } from "./work-queue.ts";

/** A ServiceEntry object. */
export type EntryObject = ConfigObject<ServiceEntry, ServiceEntryStatus>;
/** An address of a host, as the status has it. */
export type HostAddress = NonNullable<ServiceEntryStatus["addresses"]>[number];

const ENTRIES: ResourceType = {
  group: "networking.istio.io",
  version: "v1",
  kind: "ServiceEntry",
  plural: "serviceentries",
  namespaced: true,
};
/** Addresses of 240.240.0.0/16, but for the first and the last. */
const SIZE = 2 ** 16 - 2;

/** The addresses that entries should have in their status, of those whose status differs. Older entries come first. */
export function missingAddresses(entries: readonly EntryObject[]): Map<EntryObject, readonly HostAddress[]> {
  const used = new Set(
    entries.flatMap(({ spec, status }) => [
      ...(spec.addresses ?? []),
      ...(status?.addresses ?? []).map(({ value = "" }) => value),
    ]),
  );
  let last = 0;
  const next = (): readonly string[] => {
    for (; last < SIZE; ) {
      last++;
      const pair = [`240.240.${last >> 8}.${last & 255}`, `2001:2::${last.toString(16)}`];
      if (!pair.some((address) => used.has(address))) return pair;
    }
    return [];
  };
  const missing = new Map<EntryObject, readonly HostAddress[]>();
  for (const entry of entries.toSorted(byAge)) {
    const wanted = addressedHosts(entry);
    const known = Map.groupBy(entry.status?.addresses ?? [], ({ host = "" }) => host);
    if (wanted.size === 0 || wanted.symmetricDifference(known).size === 0) continue;
    const addresses = [...wanted].flatMap((host) => known.get(host) ?? next().map((value) => ({ host, value })));
    missing.set(entry, addresses);
  }
  return missing;
}

function addressedHosts(entry: EntryObject): ReadonlySet<string> {
  if (!wantsAutoAddress(entry)) return new Set();
  const { hosts, resolution } = entry.spec;
  return new Set(hosts.filter((host) => !isWildcard(host) || resolution === "DYNAMIC_DNS"));
}

function byAge({ metadata: a }: EntryObject, { metadata: b }: EntryObject): number {
  return a.createdAt - b.createdAt || (`${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1);
}

export interface AllocationOptions {
  readonly api: Pick<KubernetesApi, "call">;
  readonly source: Source;
  readonly log: Logger;
}

/** Writes missing addresses until the signal aborts. One control plane at a time may do it. */
export async function keepAddresses({ api, source, log }: AllocationOptions, signal: AbortSignal): Promise<void> {
  const queue = new WorkQueue({
    work: async () => {
      const entries = source.objects().filter(({ kind }) => kind === "ServiceEntry") as EntryObject[];
      for (const [entry, addresses] of missingAddresses(entries)) {
        const { name, namespace } = entry.metadata;
        const path = pathOf(ENTRIES, { name, namespace, subresource: "status" });
        await api.call({ method: "PATCH", path, contentType: MERGE_PATCH, body: { status: { addresses } } });
        log.info("addresses allocated", { entry: objectKey(entry), addresses: addresses.length });
      }
    },
    failed: (_key, problem) => log.warn("cannot write addresses", { reason: refusalText(problem) }),
  });
  const unsubscribe = source.subscribe(() => queue.add("all"));
  queue.add("all");
  if (!signal.aborted) {
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  }
  unsubscribe();
  await queue.stop();
}
