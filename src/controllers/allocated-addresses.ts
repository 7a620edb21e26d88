/** Addresses for hosts of ServiceEntries that have none, written into the status so that everyone uses the same. */

import { isOfKind, resourceTypeOf } from "#config/kinds/kind.ts";
import { serviceEntryKind } from "#config/kinds/service-entry/kind.ts";
import type { ServiceEntry, ServiceEntryStatus } from "#config/kinds/service-entry/schema.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { isWildcard } from "#config/terms/host.ts";
import { type AddressRange, addressAt } from "#convert/services/address-range.ts";
import type { AutoRanges } from "#convert/services/addresses.ts";
import { wantsAutoAddress } from "#convert/services/service-entry.ts";
import { type KubernetesApi, MERGE_PATCH } from "#lib/kubernetes/api-client.ts";
import { refusalText } from "#lib/kubernetes/missing-right.ts";
import { pathOf } from "#lib/kubernetes/resource-types.ts";
import type { Logger } from "#lib/log/log.ts";
import type { Source } from "#model/ports.ts";
import { WorkQueue } from "./work-queue.ts";

/** A ServiceEntry object. */
export type EntryObject = ConfigObject<ServiceEntry, ServiceEntryStatus>;
/** An address of a host, as the status has it. */
export type HostAddress = NonNullable<ServiceEntryStatus["addresses"]>[number];
/** Addresses that hosts of entries had last, by entry and host. */
export type GivenAddresses = ReadonlyMap<string, readonly string[]>;

/** As many as the usual range for IPv4 has addresses: with more of them one has to be given again anyway. */
const MAX_REMEMBERED = 65_536;
const ENTRIES = resourceTypeOf(serviceEntryKind);

/**
 * The addresses of the ranges that entries should have in their status, of those whose status differs. Older entries come
 * first. A host has again what it was `given` before, and others get that when nothing else is left.
 */
export function missingAddresses(
  entries: readonly EntryObject[],
  { v4, v6 }: AutoRanges,
  given: GivenAddresses = new Map(),
): Map<EntryObject, readonly HostAddress[]> {
  const used = new Set(
    entries.flatMap(({ spec, status }) => [
      ...(spec.addresses ?? []),
      ...(status?.addresses ?? []).map(({ value = "" }) => value),
    ]),
  );
  const before = new Set([...given.values()].flat());
  const free = [v4, v6].map((range) => freeAddresses(range, used, before));
  const take = (owner: string): readonly string[] => {
    const own = given.get(owner)?.filter((address) => !used.has(address)) ?? [];
    // A range that is used up gives nothing, the other one goes on.
    const taken = own.length > 0 ? own : free.flatMap((addresses) => addresses.next().value ?? []);
    for (const address of taken) used.add(address);
    return taken;
  };
  const taken = new Set(entries.flatMap(({ spec }) => spec.addresses ?? []));
  const missing = new Map<EntryObject, readonly HostAddress[]>();
  for (const entry of entries.toSorted(byAge)) {
    const wanted = addressedHosts(entry);
    const known = Map.groupBy(entry.status?.addresses ?? [], ({ host = "" }) => host);
    if (!wantsAutoAddress(entry)) continue;
    // Two leaders, or a backup, may have left one address with two hosts: it stays the older one's.
    for (const [host, own] of known) if (own.some(({ value = "" }) => taken.has(value))) known.delete(host);
    for (const { value = "" } of [...known.values()].flat()) taken.add(value);
    if (wanted.symmetricDifference(known).size === 0) continue;
    const addresses = [...wanted].flatMap(
      (host) => known.get(host) ?? take(ownerOf(entry, host)).map((value) => ({ host, value })),
    );
    missing.set(entry, addresses);
  }
  return missing;
}

/** In order, from behind the first of the range: those that nobody ever had, then the others. */
function* freeAddresses(
  range: AddressRange,
  used: ReadonlySet<string>,
  before: ReadonlySet<string>,
): Generator<string, undefined> {
  for (const hadOwner of [false, true]) {
    for (let offset = 1n; offset < range.size; offset++) {
      const address = addressAt(range, offset);
      if (address !== undefined && !used.has(address) && before.has(address) === hadOwner) yield address;
    }
  }
}

function ownerOf(entry: EntryObject, host: string): string {
  return `${objectKey(entry)} ${host}`;
}

function addressedHosts({ spec: { hosts, resolution } }: EntryObject): ReadonlySet<string> {
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
  // Who has looked up a host calls its address for a while, also when the host is gone: it must not lead to another.
  const given = new Map<string, readonly string[]>();
  const remember = (entry: EntryObject, addresses: readonly HostAddress[]) => {
    for (const [host, own] of Map.groupBy(addresses, ({ host = "" }) => host)) {
      const owner = ownerOf(entry, host);
      given.delete(owner);
      given.set(
        owner,
        own.map(({ value = "" }) => value),
      );
    }
  };
  const queue = new WorkQueue({
    work: async () => {
      const entries = source.objects().filter(isOfKind(serviceEntryKind));
      for (const entry of entries) remember(entry, entry.status?.addresses ?? []);
      for (const oldest of [...given.keys()].slice(0, -MAX_REMEMBERED)) given.delete(oldest);
      for (const [entry, addresses] of missingAddresses(entries, ranges, given)) {
        remember(entry, addresses);
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
