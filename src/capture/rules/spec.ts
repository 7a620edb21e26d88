/** The words in which rules are written: targets take the matches that lead to them. */
import type { ConnectionState, Match, PortRange, RuleSpec } from "../settings/rule.ts";

export const TCP: Match = { kind: "protocol", protocol: "tcp" };
export const UDP: Match = { kind: "protocol", protocol: "udp" };

export const fromInterface = (name: string): Match => ({ kind: "interface", direction: "in", name });
export const toInterface = (name: string): Match => ({ kind: "interface", direction: "out", name });

export const from = (range: string): Match => ({ kind: "address", end: "source", range });
export const to = (range: string): Match => ({ kind: "address", end: "destination", range });
export const notTo = (range: string): Match => ({ kind: "address", end: "destination", range, not: true });

export const fromPort = (port: number | PortRange): Match => ({ kind: "port", end: "source", ports: [range(port)] });
export const toPort = (port: number | PortRange): Match => ({ kind: "port", end: "destination", ports: [range(port)] });
export const notToPort = (...ports: readonly number[]): Match => ({
  kind: "port",
  end: "destination",
  ports: ports.map(range),
  not: true,
});

/** A user or a group. */
export interface Owner {
  readonly of: "uid" | "gid";
  readonly id: string;
}

export const ownedBy = ({ of, id }: Owner): Match => ({ kind: "owner", of, id });
export const notOwnedBy = ({ of, id }: Owner): Match => ({ kind: "owner", of, id, not: true });

export const marked = (mark: number): Match => ({ kind: "mark", of: "packet", mark });
export const notMarked = (mark: number): Match => ({ kind: "mark", of: "packet", mark, not: true });
export const ofMarkedConnection = (mark: number): Match => ({ kind: "mark", of: "connection", mark });

export const inState = (...states: readonly ConnectionState[]): Match => ({ kind: "state", states });

type When = readonly Match[];

export const returns = (...matches: When): RuleSpec => ({ matches, target: { kind: "return" } });
export const accepts = (...matches: When): RuleSpec => ({ matches, target: { kind: "accept" } });
export const drops = (...matches: When): RuleSpec => ({ matches, target: { kind: "drop" } });
export const jumps = (chain: string, ...matches: When): RuleSpec => ({ matches, target: { kind: "jump", chain } });
export const redirects = (port: number, ...matches: When): RuleSpec => ({
  matches,
  target: { kind: "redirect", port },
});
export const setsMark = (mark: number, ...matches: When): RuleSpec => ({ matches, target: { kind: "set-mark", mark } });
export const savesMark = (...matches: When): RuleSpec => ({ matches, target: { kind: "save-mark" } });
export const restoresMark = (...matches: When): RuleSpec => ({ matches, target: { kind: "restore-mark" } });
export const setsZone = (zone: number, ...matches: When): RuleSpec => ({ matches, target: { kind: "set-zone", zone } });

function range(port: number | PortRange): PortRange {
  return typeof port === "number" ? { from: port, to: port } : port;
}
