/** Networks from which addresses are taken, of both families. */
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** Its first address, which nobody gets, and the number of addresses with that one. */
export interface AddressRange {
  readonly family: 4 | 6;
  readonly first: bigint;
  readonly size: bigint;
}

/** Reads `ADDRESS/BITS`, from that address to the end of its network; undefined for any other text. */
export function parseAddressRange(text: string): AddressRange | undefined {
  const [, address = "", bits = ""] = /^([0-9a-fA-F.:]+)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const family = isIP(address);
  if (family !== 4 && family !== 6) return undefined;
  const width = family === 4 ? 32 : 128;
  if (Number(bits) > width) return undefined;
  const network = 1n << BigInt(width - Number(bits));
  const first = addressNumber(address);
  return { family, first, size: network - (first % network) };
}

/** The address at a distance from the first; undefined behind the end. */
export function addressAt({ family, first, size }: AddressRange, offset: bigint): string | undefined {
  if (offset < 0n || offset >= size) return undefined;
  const hex = (first + offset).toString(16).padStart(family === 4 ? 8 : 32, "0");
  return ipaddr.fromByteArray([...Buffer.from(hex, "hex")]).toString();
}

/** The distance of an address from the first; undefined where it is none of the range. */
export function offsetIn({ family, first, size }: AddressRange, address: string): bigint | undefined {
  if (isIP(address) !== family) return undefined;
  const offset = addressNumber(address) - first;
  return offset >= 0n && offset < size ? offset : undefined;
}

function addressNumber(address: string): bigint {
  return ipaddr
    .parse(address)
    .toByteArray()
    .reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
}
