/** Addresses for services whose user gave none: by hash, so that restarts and replicas agree without talking. */
import { isIPv4 } from "node:net";

/** An IPv4 network from which addresses are taken: its first address as a number, and the number of its addresses. */
export interface AddressRange {
  readonly first: number;
  readonly size: number;
}

/** 10.96.0.0/12, the usual range of cluster IPs. */
export const CLUSTER_IP_RANGE: AddressRange = { first: 0x0a600000, size: 2 ** 20 };

/** 240.240.0.0/16, which no network routes. */
export const AUTO_ADDRESS_RANGE: AddressRange = { first: 0xf0f00000, size: 2 ** 16 };

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
    if (address !== undefined && contains(range, address) && !used.has(address)) give(name, address);
  }
  // In one order whatever the order of the names, so that everyone settles collisions alike.
  for (const name of names.filter((name) => !result.has(name)).sort()) {
    const address = firstFree(name, range, used);
    if (address !== undefined) give(name, address);
  }
  return result;
}

/** The cluster IP of a Kubernetes service by its hostname, as long as no other service has it. */
export function preferredClusterIp(hostname: string): string {
  return formatIpv4(CLUSTER_IP_RANGE.first + usableOffset(fnv32a(hostname), CLUSTER_IP_RANGE.size));
}

/** The IPv6 address, of a range that no network routes, that goes with an allocated IPv4 address. */
export function pairedIpv6(address: string): string {
  const [, , third = 0, fourth = 0] = address.split(".").map(Number);
  return `2001:2::f0f0:${((third << 8) | fourth).toString(16)}`;
}

function firstFree(name: string, { first, size }: AddressRange, used: ReadonlySet<string>): string | undefined {
  const start = fnv32a(name);
  for (let step = 0; step < size; step++) {
    const address = formatIpv4(first + usableOffset(start + step, size));
    if (!used.has(address)) return address;
  }
  return undefined;
}

/** Leaves out the first and the last address of each /24, which some systems treat as network and broadcast. */
function usableOffset(number: number, size: number): number {
  const index = number % ((size / 256) * 254);
  return Math.floor(index / 254) * 256 + (index % 254) + 1;
}

/** FNV-1a, 32 bits, of the UTF-16 units. */
export function fnv32a(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}

function contains({ first, size }: AddressRange, address: string): boolean {
  const number = parseIpv4(address);
  return number !== undefined && number >= first && number < first + size;
}

function parseIpv4(text: string): number | undefined {
  return isIPv4(text) ? text.split(".").reduce((sum, part) => sum * 256 + Number(part), 0) : undefined;
}

function formatIpv4(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join(".");
}
