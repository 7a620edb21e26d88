/** Whether a rule is about a packet. */
import ipaddr from "ipaddr.js";
import type { Match } from "../settings/rule.ts";
import type { Owner } from "./packet.ts";

/** A packet at one moment of its way: rules may have changed it since it was sent. */
export interface PacketNow {
  readonly protocol: "tcp" | "udp";
  readonly source: string | undefined;
  readonly sourcePort: number | undefined;
  readonly destination: string;
  readonly port: number;
  /** Only one of them is set: a packet is on its way in or out. */
  readonly inInterface: string | undefined;
  readonly outInterface: string | undefined;
  readonly owner: Owner | undefined;
  readonly state: string;
  readonly mark: number;
  readonly connectionMark: number;
}

/** True when all that the match asks for holds. */
export function matches(match: Match, packet: PacketNow): boolean {
  const holds = condition(match, packet);
  return "not" in match && match.not ? !holds : holds;
}

function condition(match: Match, packet: PacketNow): boolean {
  switch (match.kind) {
    case "protocol":
      return packet.protocol === match.protocol;
    case "interface":
      return isInterface(match.name, match.direction === "in" ? packet.inInterface : packet.outInterface);
    case "address":
      return isInRange(match.end === "source" ? packet.source : packet.destination, match.range);
    case "port": {
      const port = match.end === "source" ? packet.sourcePort : packet.port;
      return port !== undefined && match.ports.some(({ from, to }) => port >= from && port <= to);
    }
    case "owner":
      return packet.owner !== undefined && isId(match.id, packet.owner[match.of]);
    case "mark":
      return (match.of === "packet" ? packet.mark : packet.connectionMark) === match.mark;
    case "state":
      return match.states.some((state) => state === packet.state);
  }
}

/** A `+` at the end stands for any rest of the name. */
export function isInterface(wanted: string, name: string | undefined): boolean {
  if (name === undefined) return false;
  return wanted.endsWith("+") ? name.startsWith(wanted.slice(0, -1)) : name === wanted;
}

/** Bits of the range beyond its length do not count. */
export function isInRange(address: string | undefined, range: string): boolean {
  if (address === undefined) return false;
  const [base = "", length = ""] = range.split("/");
  const one = ipaddr.parse(address);
  const other = ipaddr.parse(base);
  return one.kind() === other.kind() && one.match(other, Number(length));
}

/** A number, or the numbers of `a-b`. */
export function isId(wanted: string, id: number): boolean {
  const [from = "", to = from] = wanted.split("-");
  return id >= Number(from) && id <= Number(to);
}
