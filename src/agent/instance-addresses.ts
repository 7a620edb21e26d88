import { isIPv4, isIPv6, SocketAddress } from "node:net";
import type { NetworkInterfaceInfo } from "node:os";

/** As `os.networkInterfaces()` gives them. */
export type Interfaces = Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>;

/** 169.254.0.0/16 and fe80::/10, as the system writes addresses. Node's lists of ranges would take half a millisecond of each start. */
const LINK_LOCAL = /^(?:169\.254\.|fe[89ab][\da-f]:)/;

/** Addresses of this instance: the one that identifies it first, then those of its interfaces; loopback if there are none. */
export function instanceAddresses(
  instanceIp: string,
  interfaces: Interfaces,
  excluded: readonly string[],
): readonly string[] {
  const all = Object.entries(interfaces).flatMap(([name, infos = []]) =>
    infos.filter(isGlobal).map(({ address }) => ({ name, address })),
  );
  const own = all.filter(({ name }) => !excluded.includes(name)).map(({ address }) => address);
  return [...new Set([...plainAddress(instanceIp), ...(all.length > 0 ? own : ["127.0.0.1", "::1"])])];
}

/** In the shortest form, in which it is compared with others. */
function plainAddress(address: string): readonly string[] {
  if (isIPv4(address)) return [address];
  if (!address.includes(":") || !isIPv6(address)) return [];
  const [zone = ""] = /%.*$/s.exec(address) ?? [];
  return [new SocketAddress({ address, family: "ipv6" }).address + zone];
}

function isGlobal({ internal, address }: NetworkInterfaceInfo): boolean {
  return !internal && !LINK_LOCAL.test(address);
}
