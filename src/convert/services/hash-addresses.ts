/**
 * The addresses that control planes without an address controller agree upon (`PILOT_ENABLE_IP_AUTOALLOCATE=false`): each
 * host has a slot by the hash of its key, and its address is the number of that slot. Proxies and other replicas rely on
 * the very same numbers.
 */
import { byAge } from "#config/terms/precedence.ts";
import type { Service } from "#model/service/service.ts";
import { fnv32a } from "./addresses.ts";

const SLOTS = 256 * 254;
/** The step after a collision is taken from it: a prime does not repeat itself soon. */
const PRIME = 65_011;

/** Addresses of one host, one for each family. */
export interface AutoAddresses {
  readonly autoAddress: string | undefined;
  readonly autoAddress6: string | undefined;
}

/** Addresses by key of the services, given in order of age; two services with one key have the same. */
export function hashAddresses(keys: readonly string[]): Map<string, AutoAddresses> {
  const found = new Map<string, AutoAddresses>();
  if (keys.length === 0) return found;
  let number = 0;
  for (const key of filledSlots(keys)) {
    number++;
    if (key === undefined) continue;
    // The last octet is never 0.
    if (number % 255 === 0) number++;
    if (!found.has(key)) found.set(key, addressesOf(Math.floor(number / 255), number % 255));
  }
  return found;
}

function filledSlots(keys: readonly string[]): readonly (string | undefined)[] {
  const slots = new Array<string | undefined>(SLOTS).fill(undefined);
  for (const key of keys.slice(0, SLOTS)) {
    const hash = fnv32a(key);
    const step = PRIME - (hash % PRIME);
    let slot = hash % SLOTS;
    for (let i = 1; slots[slot] !== undefined && i <= SLOTS; i++) slot = nextSlot(hash, i, step);
    slots[slot] ??= key;
  }
  return slots;
}

/** Computed with 32 bits, as where it is computed elsewhere. */
function nextSlot(hash: number, attempt: number, step: number): number {
  return ((hash + Math.imul(attempt, step)) >>> 0) % (SLOTS - 1);
}

function addressesOf(third: number, fourth: number): AutoAddresses {
  const low = third === 0 ? fourth.toString(16) : `${third.toString(16)}${fourth.toString(16)}`;
  return { autoAddress: `240.240.${third}.${fourth}`, autoAddress6: `2001:2::f0f0:${low}` };
}

/** The services in the order in which they get their slots. */
export function inOrderOfAge(services: readonly Service[]): readonly Service[] {
  return services.toSorted(byAge);
}
