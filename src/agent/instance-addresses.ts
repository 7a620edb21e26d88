import { BlockList, isIP, isIPv6 } from "node:net";
import type { NetworkInterfaceInfo } from "node:os";

/** As `os.networkInterfaces()` gives them. */
export type Interfaces = Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>;

const LINK_LOCAL = new BlockList();
LINK_LOCAL.addSubnet("169.254.0.0", 16, "ipv4");
LINK_LOCAL.addSubnet("fe80::", 10, "ipv6");

/** Addresses of this instance: the one that identifies it first, then those of its interfaces; loopback if there are none. */
export function instanceAddresses(
  instanceIp: string,
  interfaces: Interfaces,
  excluded: readonly string[],
): readonly string[] {
  const own = Object.entries(interfaces).flatMap(([name, infos = []]) =>
    excluded.includes(name) ? [] : infos.filter(isGlobal),
  );
  const addresses = own.map(({ address }) => address);
  const first = isIP(instanceIp) === 0 ? [] : [instanceIp];
  return [...new Set([...first, ...(addresses.length > 0 ? addresses : ["127.0.0.1", "::1"])])];
}

function isGlobal({ internal, address }: NetworkInterfaceInfo): boolean {
  return !internal && !LINK_LOCAL.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}
