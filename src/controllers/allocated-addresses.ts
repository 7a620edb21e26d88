/** Addresses for hosts of ServiceEntries that have none, written into the status so that everyone uses the same. */
import { type ConfigObject, objectKey } from "#config/config-object.ts";
import { isWildcard } from "#config/host.ts";
import type { ServiceEntry, ServiceEntryStatus } from "#config/kinds/service-entry.ts";
import { type AddressRange, addressAt } from "#convert/address-range.ts";
import type { AutoRanges } from "#convert/addresses.ts";
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
/**
 * The addresses of the ranges that entries should have in their status, of those whose status differs. Older entries come
 * first.
 */
export function missingAddresses(
  entries: readonly EntryObject[],
  { v4, v6 }: AutoRanges,
): Map<EntryObject, readonly HostAddress[]> {
  const used = new Set(
    entries.flatMap(({ spec, status }) => [
      ...(spec.addresses ?? []),
      ...(status?.addresses ?? []).map(({ value = "" }) => value),
    ]),
  );
  const free = [freeAddresses(v4, used), freeAddresses(v6, used)];
  // A range that is used up gives nothing, the other one goes on.
  const next = (): readonly string[] => free.flatMap((addresses) => addresses.next().value ?? []);
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

/** In order, from behind the first of the range. */
function* freeAddresses(range: AddressRange, used: ReadonlySet<string>): Generator<string, undefined> {
  for (let offset = 1n; offset < range.size; offset++) {
    const address = addressAt(range, offset);
    if (address !== undefined && !used.has(address)) yield address;
  }
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
  readonly ranges: AutoRanges;
  readonly log: Logger;
}

/** So long what changes no service may wait until entries are looked at. */
const LATER_MS = 1_000;

/** Writes missing addresses until the signal aborts. One control plane at a time may do it. */
export async function keepAddresses(
  { api, source, ranges, log }: AllocationOptions,
  signal: AbortSignal,
): Promise<void> {
  const queue = new WorkQueue({
    work: async () => {
      const entries = source.objects().filter(({ kind }) => kind === "ServiceEntry") as EntryObject[];
      for (const [entry, addresses] of missingAddresses(entries, ranges)) {
        const { name, namespace } = entry.metadata;
        const path = pathOf(ENTRIES, { name, namespace, subresource: "status" });
        await api.call({ method: "PATCH", path, contentType: MERGE_PATCH, body: { status: { addresses } } });
        log.info("addresses allocated", { entry: objectKey(entry), addresses: addresses.length });
      }
    },
    failed: (_key, problem) => log.warn("cannot write addresses", { reason: refusalText(problem) }),
  });
  // Most changes are of endpoints, which proxies wait for: only new services are looked at before these have them.
  let { services } = source.current();
  let later: NodeJS.Timeout | undefined;
  const look = () => {
    clearTimeout(later);
    later = undefined;
    queue.add("all");
  };
  const unsubscribe = source.subscribe((snapshot) => {
    if (snapshot.services !== services) look();
    else later ??= setTimeout(look, LATER_MS);
    services = snapshot.services;
  });
  queue.add("all");
  if (!signal.aborted) {
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  }
  unsubscribe();
  clearTimeout(later);
  await queue.stop();
}
