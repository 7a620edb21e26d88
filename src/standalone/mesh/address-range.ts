/** The addresses of a mesh: one range, of which the first few are the fabric's own. */

export interface AddressRange {
  /** As written, `10.244.0.0/16`. */
  readonly cidr: string;
  readonly prefixLength: number;
  /** Default route and name server of every member. */
  readonly gateway: string;
  readonly controlPlane: string;
}

/** Of a mesh that says nothing else. No other network is connected to a fabric, so every mesh can have the same. */
export const DEFAULT_CIDR = "10.244.0.0/16";

const GATEWAY = 1;
const CONTROL_PLANE = 2;
const FIRST_MEMBER = 10;
/** Smaller ones have no room for members, larger ones would take all there is. */
const PREFIX_LENGTHS = { least: 8, most: 27 };

/** What a mesh, its proxies or the machine use in ways of their own. */
const RESERVED: Readonly<Record<string, string>> = {
  "0.0.0.0/8": "this network",
  "127.0.0.0/8": "loopback",
  "169.254.0.0/16": "links, and probes of the mesh",
  "198.18.0.0/15": "the way out",
  "224.0.0.0/4": "multicast",
  "240.0.0.0/4": "service entries",
};

interface Network {
  readonly first: number;
  readonly prefixLength: number;
}

/** The range of a checked text. */
export function addressRange(cidr: string): AddressRange {
  const network = parseCidr(cidr);
  if (network === undefined) throw new Error(`"${cidr}" is no range of addresses`);
  const { first, prefixLength } = network;
  return {
    cidr,
    prefixLength,
    gateway: formatAddress(first + GATEWAY),
    controlPlane: formatAddress(first + CONTROL_PLANE),
  };
}

export const DEFAULT_RANGE = addressRange(DEFAULT_CIDR);

/** Addresses for members, from the first to the last. */
export function* memberAddresses({ cidr }: AddressRange): Generator<string> {
  const network = parseCidr(cidr);
  const { first, prefixLength } = network ?? { first: 0, prefixLength: 32 };
  const last = 2 ** (32 - prefixLength) - 2;
  for (let number = FIRST_MEMBER; number <= last; number++) yield formatAddress(first + number);
}

/** The place of an address in its range, counted from the range's first address. */
export function addressIndex({ cidr }: AddressRange, address: string): number {
  const [start, own] = [parseCidr(cidr), parseCidr(`${address}/32`)];
  if (start === undefined || own === undefined) throw new Error(`"${address}" is no address`);
  return own.first - start.first;
}

/** What is wrong with a range that a person chose; undefined when nothing is. */
export function rangeProblem(cidr: string): string | undefined {
  const network = parseCidr(cidr);
  if (network === undefined) return `must be a range of IPv4 addresses such as ${DEFAULT_CIDR}, not "${cidr}"`;
  const { least, most } = PREFIX_LENGTHS;
  const { first, prefixLength } = network;
  if (prefixLength < least || prefixLength > most) return `must be a range from /${least} to /${most}, not "${cidr}"`;
  const start = first - (first % 2 ** (32 - prefixLength));
  if (start !== first)
    return `must start where the range does: "${formatAddress(start)}/${prefixLength}", not "${cidr}"`;
  const [reserved] = Object.entries(RESERVED).find(([other]) => overlap(cidr, other)) ?? [];
  return (
    reserved && `must not overlap ${reserved}, which is for ${RESERVED[reserved]}: choose one such as 10.99.0.0/16`
  );
}

/** Whether two ranges have an address in common. */
export function overlap(one: string, other: string): boolean {
  const [a, b] = [parseCidr(one), parseCidr(other)];
  if (a === undefined || b === undefined) return false;
  const size = 2 ** (32 - Math.min(a.prefixLength, b.prefixLength));
  return Math.floor(a.first / size) === Math.floor(b.first / size);
}

function parseCidr(text: string): Network | undefined {
  const [, address = "", length = ""] = /^(\d{1,3}(?:\.\d{1,3}){3})\/(\d{1,2})$/.exec(text) ?? [];
  const parts = address.split(".").map(Number);
  if (address === "" || parts.some((part) => part > 255) || Number(length) > 32) return undefined;
  return { first: parts.reduce((number, part) => number * 256 + part, 0), prefixLength: Number(length) };
}

function formatAddress(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join(".");
}
