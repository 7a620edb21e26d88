/** Addresses for services whose user gave none: by hash, so that restarts and replicas agree without talking. */
import { DEFAULT_FEATURES, type Features } from "#model/features.ts";
import { type AddressRange, addressAt, offsetIn, parseAddressRange } from "./address-range.ts";

/** 10.96.0.0/12, the usual range of cluster IPs. */
export const CLUSTER_IP_RANGE: AddressRange = { family: 4, first: 0x0a60_0000n, size: 2n ** 20n };

/** The ranges of both families from which hosts without address get one. */
export interface AutoRanges {
  readonly v4: AddressRange;
  readonly v6: AddressRange;
}

/** As the control plane was told, or those that no network routes. */
export function autoRanges({ autoRange4, autoRange6 }: Pick<Features, "autoRange4" | "autoRange6">): AutoRanges {
  return {
    v4: parseAddressRange(autoRange4) ?? rangeOf(DEFAULT_FEATURES.autoRange4),
    v6: parseAddressRange(autoRange6) ?? rangeOf(DEFAULT_FEATURES.autoRange6),
  };
}

function rangeOf(text: string): AddressRange {
  const range = parseAddressRange(text);
  if (range === undefined) throw new Error(`"${text}" is no range of addresses`);
  return range;
}

/** Address by name for each of the names, none twice and none of `taken`; names keep what they had in `previous`. */
export function allocateAddresses(request: {
  readonly names: readonly string[];
  readonly range: AddressRange;
  readonly taken: ReadonlySet<string>;
  readonly previous: ReadonlyMap<string, string>;
}): Map<string, string> {
  const { names, range, taken, previous } = request;
  const used = new Set(taken);
  const result = new Map<string, string>();
  const give = (name: string, address: string) => {
    used.add(address);
    result.set(name, address);
  };
  for (const name of names) {
    const address = previous.get(name);
    if (address !== undefined && offsetIn(range, address) !== undefined && !used.has(address)) give(name, address);
  }
  // In one order whatever the order of the names, so that everyone settles collisions alike.
  for (const name of names.filter((name) => !result.has(name)).sort()) {
    const address = firstFree(name, range, used);
    if (address !== undefined) give(name, address);
  }
  return result;
}

/** The IPv6 address that goes with an allocated IPv4 address: with the same number, where there is room for it. */
export function pairedIpv6(address: string, { v4, v6 }: AutoRanges): string | undefined {
  const offset = offsetIn(v4, address) ?? 0n;
  return addressAt(v6, v6.size > 2n ** 32n ? v4.first + offset : offset);
}

function firstFree(name: string, range: AddressRange, used: ReadonlySet<string>): string | undefined {
  const start = fnv32a(name);
  for (let step = 0; step < range.size; step++) {
    const address = addressAt(range, usableOffset(start + step, range));
    if (address !== undefined && !used.has(address)) return address;
  }
  return undefined;
}

/** Leaves out the first and the last address of each /24, which some systems treat as network and broadcast. */
function usableOffset(number: number, range: AddressRange): bigint {
  const size = Number(range.size);
  const block = Math.min(size, 256);
  const perBlock = Math.max(block - 2, 1);
  const index = number % (Math.max(Math.floor(size / block), 1) * perBlock);
  return BigInt(Math.floor(index / perBlock) * block + (index % perBlock) + 1);
}

/** FNV-1a, 32 bits, of the UTF-16 units. */
export function fnv32a(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}
