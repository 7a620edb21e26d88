/** One packet, as far as rules look at it. */
import type { ConnectionState, Family } from "../settings/rule.ts";

export interface Packet {
  readonly family: Family;
  /** Seen from the pod. */
  readonly direction: "inbound" | "outbound";
  readonly protocol: "tcp" | "udp";
  /** Undefined when it does not matter: then no rule about it matches. */
  readonly source: string | undefined;
  readonly sourcePort: number | undefined;
  readonly destination: string;
  readonly port: number;
  /** The destination is an address of the pod itself. */
  readonly toSelf: boolean;
  /** Interface by which it comes in or goes out; `lo` for what the pod sends to itself. */
  readonly interface: string;
  /** Sender by user and group id; undefined for packets from elsewhere, whose sender the kernel does not know. */
  readonly owner: Owner | undefined;
  /** What conntrack knows of its connection; `NEW` for the first packet of one. */
  readonly state: "NEW" | ConnectionState;
}

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** `10.0.0.5:443`, `[fd00::5]:443`. */
export function formatEndpoint(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/** Address from which the kernel calls an address of the pod itself, unless the caller chose one. */
export function sourceTowardsSelf(destination: string): string {
  return destination.startsWith("127.") ? "127.0.0.1" : destination;
}
