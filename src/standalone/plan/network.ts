/** The fabric as `ip` batches: one namespace with a bridge, one per member with a cable to it. */
import { type AddressRange, DEFAULT_RANGE } from "../mesh/address-range.ts";
import { cableName, FABRIC } from "./names.ts";

/** Settings and `ip` lines for one namespace, applied together by one process. */
export interface NetworkPlan {
  readonly netns: string;
  /** Values by path under /proc/sys/net; those that the kernel does not have are skipped. */
  readonly sysctls: Readonly<Record<string, string>>;
  readonly ip: readonly string[];
}

export interface Cable {
  /** `name.namespace` */
  readonly key: string;
  readonly netns: string;
  readonly address: string;
  readonly range?: AddressRange;
}

/**
 * The bridge. Traffic between members is routed here, not switched: each has a /32 and sends everything
 * to the gateway. So this namespace sees both directions of every connection and can translate service addresses.
 */
export function fabricNetwork(netns: string, range = DEFAULT_RANGE): NetworkPlan {
  const { bridge, prober } = FABRIC;
  const { gateway, prefixLength } = range;
  return {
    netns,
    sysctls: {
      "ipv4/ip_forward": "1",
      "ipv4/conf/all/send_redirects": "0",
      "ipv4/conf/default/send_redirects": "0",
      "ipv4/ip_unprivileged_port_start": "0",
      // Calls to addresses that nobody has are refused; the usual limit would leave all but the first few hanging.
      "ipv4/icmp_ratelimit": "0",
      // Where the kernel shows bridged frames to iptables, addresses would be translated before routing.
      "bridge/bridge-nf-call-iptables": "0",
      "bridge/bridge-nf-call-ip6tables": "0",
      ...WITHOUT_DAD,
    },
    ip: [
      "link set lo up",
      // Without an address of its own a bridge takes that of one of its cables: all would lose it when that one goes.
      `link add ${bridge} address ${hardwareAddress(gateway)} type bridge forward_delay 0`,
      `addr add ${gateway}/${prefixLength} dev ${bridge}`,
      `addr add ${prober}/32 dev ${bridge}`,
      `link set ${bridge} up`,
    ],
  };
}

/** Connects a member to the bridge: `ip` lines for the fabric's namespace. */
export function cableLines({ key, netns }: Pick<Cable, "key" | "netns">): readonly string[] {
  return [
    `link add ${cableName(key)} type veth peer name eth0 netns ${netns}`,
    `link set ${cableName(key)} master ${FABRIC.bridge} up`,
  ];
}

/** A member's end of the cable. The default route is there because a packet must be routable before it is redirected. */
export function memberNetwork({ netns, address, range = DEFAULT_RANGE }: Cable): NetworkPlan {
  return {
    netns,
    sysctls: { "ipv4/ip_unprivileged_port_start": "0", "ipv6/conf/eth0/accept_dad": "0", ...WITHOUT_DAD },
    ip: [
      "link set lo up",
      `link set eth0 address ${hardwareAddress(address)}`,
      `addr add ${address}/32 dev eth0`,
      "link set eth0 up",
      `route add ${range.gateway} dev eth0 scope link`,
      `route add default via ${range.gateway}`,
    ],
  };
}

/**
 * The same for the same address: whoever gets the address of a member that has just left is found by those who still know
 * where that one was. The first byte says that nobody gave it out.
 */
function hardwareAddress(address: string): string {
  const bytes = ["02", "6d", ...address.split(".").map((part) => Number(part).toString(16).padStart(2, "0"))];
  return bytes.join(":");
}

/** Duplicate address detection would keep IPv6 addresses unusable for the first seconds. */
const WITHOUT_DAD = { "ipv6/conf/all/accept_dad": "0", "ipv6/conf/default/accept_dad": "0" };

/** Rules that let probes pass by the sidecar: what is not tracked is not redirected. For `iptables-restore --noflush`. */
export const PROBE_RULES = `*raw
-A PREROUTING -s ${FABRIC.prober}/32 -p tcp -j NOTRACK
-A OUTPUT -d ${FABRIC.prober}/32 -p tcp -j NOTRACK
COMMIT
`;
