import { isIPv6 } from "node:net";

const NETWORK_GROUPS = 4;

/**
 * The peer that an address belongs to. IPv4 in IPv6's form is IPv4, and a /64 of IPv6 is one peer, because a single host
 * can use all of it. Peers without an address, as on unix sockets, are one peer.
 */
export function peerName(address: string | undefined): string {
  if (address === undefined) return "";
  const ipv4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1];
  if (ipv4 !== undefined) return ipv4;
  const [plain = ""] = address.split("%");
  if (!isIPv6(plain)) return address;
  const [head = "", tail] = plain.split("::");
  const groups = head === "" ? [] : head.split(":");
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === "" ? 0 : tail.split(":").length);
  const all = [...groups, ...Array<string>(missing).fill("0"), ...(tail ?? "").split(":")];
  return `${all.slice(0, NETWORK_GROUPS).join(":")}::/64`;
}
