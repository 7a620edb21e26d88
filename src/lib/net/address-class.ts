/** Tells public addresses from those that only lead somewhere inside, in whatever form they are written. */
import ipaddr from "ipaddr.js";

/**
 * `local`: this machine, its link, a group of machines, or a cloud's metadata server. `private`: a network that is not the
 * Internet, or a way to another address that depends on the network (NAT64, 6to4, Teredo, IPv4-compatible).
 */
export type AddressClass = "public" | "private" | "local";

type IPv4 = ipaddr.IPv4;
type IPv6 = ipaddr.IPv6;

/** Metadata servers and the like of AWS, Google, Azure, Alibaba, Oracle and Scaleway that are not link-local. */
const METADATA = [
  "100.100.100.200/32",
  "168.63.129.16/32",
  "192.0.0.192/32",
  "fd00:ec2::/32",
  "fd20:ce::/32",
  "fd00:c1::/32",
  "fd00:42::/32",
].map((range) => ipaddr.parseCIDR(range));
const NAT64 = ipaddr.IPv6.parseCIDR("64:ff9b::/96");
const LOCAL_NAT64 = ipaddr.IPv6.parseCIDR("64:ff9b:1::/48");
const COMPATIBLE = ipaddr.IPv6.parseCIDR("::/96");
const SITE_LOCAL = ipaddr.IPv6.parseCIDR("fec0::/10");
/** All addresses of the Internet are in it. */
const GLOBAL = ipaddr.IPv6.parseCIDR("2000::/3");
const LOCAL: ReadonlySet<string> = new Set(["unspecified", "broadcast", "multicast", "linkLocal", "loopback"]);
const PRIVATE: ReadonlySet<string> = new Set(["private", "carrierGradeNat", "uniqueLocal"]);
const FIRST_OCTET_OF_CLASS_E = 240;

/** The class of an IP address. */
export function addressClass(text: string): AddressClass {
  const address = parse(text);
  if (METADATA.some(([net, bits]) => net.kind() === address.kind() && address.match(net, bits))) return "local";
  const range = address.range();
  if (LOCAL.has(range)) return "local";
  if (PRIVATE.has(range)) return "private";
  return address instanceof ipaddr.IPv4 ? classOfIPv4(address) : classOfIPv6(address);
}

/** The IPv4 addresses that packets to an IPv6 address may end up at. */
export function embeddedIPv4(text: string): readonly string[] {
  const address = parse(text);
  return address instanceof ipaddr.IPv6 ? (carried(address) ?? []).map(String) : [];
}

/** What is reserved for documentation leads nowhere, and Class E is a private network for some clouds. */
function classOfIPv4({ octets: [first = 0] }: IPv4): AddressClass {
  return first >= FIRST_OCTET_OF_CLASS_E ? "private" : "public";
}

function classOfIPv6(address: IPv6): AddressClass {
  const ends = carried(address);
  if (ends !== undefined) return ends.some(isLocalEnd) ? "local" : "private";
  if (address.match(SITE_LOCAL)) return "private";
  return address.match(GLOBAL) ? "public" : "local";
}

/** The addresses inside; undefined where none can be. */
function carried(address: IPv6): readonly IPv4[] | undefined {
  const [, a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0] = address.parts;
  const range = address.range();
  if (range === "6to4") return [ipv4(a, b)];
  if (range === "teredo") return [ipv4(b, c), ipv4(~f & 0xffff, ~g & 0xffff)];
  if (range === "rfc6145" || address.match(NAT64) || address.match(COMPATIBLE)) return [ipv4(f, g)];
  // RFC 6052 puts the address behind a prefix of 48 bits in two parts around an octet of zeros.
  if (address.match(LOCAL_NAT64)) return [ipv4(f, g), ipv4(c, ((d & 0xff) << 8) | (e >> 8))];
  return undefined;
}

/** Of the two ways to read a local NAT64 address, the wrong one often gives an address in 0.0.0.0/8. */
function isLocalEnd(end: IPv4): boolean {
  return end.range() !== "unspecified" && addressClass(end.toString()) === "local";
}

/** IPv4-mapped addresses become IPv4. ipaddr.js takes `::1.2.3.4` for one of those, so dots are written as groups first. */
function parse(text: string): IPv4 | IPv6 {
  const [, front, ...octets] = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text) ?? [];
  if (front === undefined) return ipaddr.process(text);
  const [a = 0, b = 0, c = 0, d = 0] = octets.map(Number);
  return ipaddr.process(`${front}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`);
}

function ipv4(high: number, low: number): IPv4 {
  return new ipaddr.IPv4([high >> 8, high & 0xff, low >> 8, low & 0xff]);
}
