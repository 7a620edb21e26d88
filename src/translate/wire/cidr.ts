/** Ranges of addresses. */
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import type { CidrRangeSchema } from "#gen/envoy/config/core/v3/address_pb.ts";
import type { Init } from "./encode.ts";

/** A range, or a single address as a range of one; undefined for what is neither, and for `0.0.0.0`, which means any. */
export function cidrRange(text: string): Init<typeof CidrRangeSchema> | undefined {
  const parsed = parseRange(text);
  if (parsed === undefined || text.startsWith("0.0.0.0")) return undefined;
  return { addressPrefix: parsed.address.toString(), prefixLen: parsed.bits };
}

/** A checked range as it is written, so that `0.0.0.0/0` is every address of IPv4. What is no range matches no address. */
export function literalRange(text: string): Init<typeof CidrRangeSchema> {
  const parsed = parseRange(text);
  return parsed === undefined
    ? { addressPrefix: "0.0.0.0", prefixLen: 32 }
    : { addressPrefix: parsed.address.toString(), prefixLen: parsed.bits };
}

/** Checked ranges in order of their addresses, IPv4 first; what is no range is left out. */
export function sortedRanges(texts: readonly string[]): Init<typeof CidrRangeSchema>[] {
  const parsed = texts.flatMap((text) => parseRange(text) ?? []);
  const keyOf = ({ address }: ParsedRange) => Buffer.from(address.toByteArray());
  parsed.sort((a, b) => {
    const [first, second] = [keyOf(a), keyOf(b)];
    return first.length - second.length || first.compare(second) || a.bits - b.bits;
  });
  return parsed.map(({ address, bits }) => ({ addressPrefix: address.toString(), prefixLen: bits }));
}

/** The same text for ranges that hold the same addresses: `10.1.2.3/8` is `10.0.0.0/8`. */
export function rangeKey(text: string): string | undefined {
  const parsed = parseRange(text);
  if (parsed === undefined || text.startsWith("0.0.0.0")) return undefined;
  const { address, bits } = parsed;
  const cidr = `${address.toString()}/${bits}`;
  const first =
    address.kind() === "ipv4"
      ? ipaddr.IPv4.networkAddressFromCIDR(cidr).toString()
      : ipaddr.IPv6.networkAddressFromCIDR(cidr).toString();
  return `${first}/${bits}`;
}

interface ParsedRange {
  readonly address: ipaddr.IPv4 | ipaddr.IPv6;
  readonly bits: number;
}

function parseRange(text: string): ParsedRange | undefined {
  // The library also takes numbers in other forms, such as 2130706433, which nobody means.
  if (isIP(text.split("/")[0] ?? "") === 0) return undefined;
  if (ipaddr.isValidCIDR(text)) {
    const [address, bits] = ipaddr.parseCIDR(text);
    return { address, bits };
  }
  if (!ipaddr.isValid(text)) return undefined;
  const address = ipaddr.parse(text);
  return { address, bits: address.kind() === "ipv4" ? 32 : 128 };
}
