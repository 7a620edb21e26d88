/** The two families of addresses. */
import ipaddr from "ipaddr.js";
import type { Family } from "./rule.ts";

export const FAMILIES: readonly Family[] = ["v4", "v6"];

export const FAMILY_NAMES: Readonly<Record<Family, string>> = { v4: "IPv4", v6: "IPv6" };

/** Loopback addresses that Envoy's listeners are redirected to. */
export const LOOPBACK: Readonly<Record<Family, string>> = { v4: "127.0.0.1", v6: "::1" };

/** Of an address, or of the first one of a range. */
export function isLoopback(addressOrRange: string): boolean {
  return ipaddr.parse(addressOrRange.split("/")[0] ?? "").range() === "loopback";
}
