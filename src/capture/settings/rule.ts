/**
 * One rule of packet filtering, as a value: which packets, and what happens to them. How it is spelled is somewhere
 * else: `iptables/` and `nftables/`.
 */

export type Family = "v4" | "v6";
export type Table = "filter" | "mangle" | "nat" | "raw";

export interface Rule extends RuleSpec {
  readonly table: Table;
  readonly chain: string;
  /** Where to insert it, counted from 1; undefined appends. */
  readonly position: number | undefined;
  /** What the rule is for. */
  readonly why: string;
}

/** What happens to packets that match all of `matches`; to every packet when there are none. */
export interface RuleSpec {
  readonly matches: readonly Match[];
  readonly target: Target;
}

/** Both ends belong to it; a single port has the same twice. */
export interface PortRange {
  readonly from: number;
  readonly to: number;
}

/** A condition on a packet; with `not`, its opposite. */
export type Match =
  | { readonly kind: "protocol"; readonly protocol: "tcp" | "udp" }
  /** Interface by which the packet comes in or goes out; a `+` at the end stands for any rest of the name. */
  | { readonly kind: "interface"; readonly direction: "in" | "out"; readonly name: string }
  /** `range` is an address with a length, such as `10.0.0.0/8`. */
  | { readonly kind: "address"; readonly end: PacketEnd; readonly range: string; readonly not?: true }
  /** One of the ports; a packet without ports does not match, `not` or not. */
  | { readonly kind: "port"; readonly end: PacketEnd; readonly ports: readonly PortRange[]; readonly not?: true }
  /** User or group of the process that sent the packet, by number, range of numbers or name. */
  | { readonly kind: "owner"; readonly of: "uid" | "gid"; readonly id: string; readonly not?: true }
  /** Mark of the packet, or of its connection. */
  | { readonly kind: "mark"; readonly of: "packet" | "connection"; readonly mark: number; readonly not?: true }
  /** What conntrack knows of the packet's connection. */
  | { readonly kind: "state"; readonly states: readonly ConnectionState[] };

export type PacketEnd = "source" | "destination";
export type ConnectionState = "INVALID" | "RELATED" | "ESTABLISHED";

/** Marks and zones let the packet go on to the next rule; all others decide. */
export type Target =
  /** Back to the chain that jumped here; from a built-in chain: the packet passes. */
  | { readonly kind: "return" }
  | { readonly kind: "accept" }
  | { readonly kind: "drop" }
  /** On to another chain of the table, and back here when that one has no more rules. */
  | { readonly kind: "jump"; readonly chain: string }
  /** To a port of this machine. */
  | { readonly kind: "redirect"; readonly port: number }
  /** To a socket of this machine, addresses unchanged, with the packet marked. */
  | { readonly kind: "tproxy"; readonly port: number; readonly mark: number }
  | { readonly kind: "set-mark"; readonly mark: number }
  /** Packet mark to connection mark, and back. */
  | { readonly kind: "save-mark" }
  | { readonly kind: "restore-mark" }
  /** Conntrack zone. */
  | { readonly kind: "set-zone"; readonly zone: number };

export interface TableRules {
  append(chain: string, spec: RuleSpec, why: string): Rule;
  insert(at: { readonly chain: string; readonly position: number }, spec: RuleSpec, why: string): Rule;
}

export const nat = rulesOf("nat");
export const mangle = rulesOf("mangle");
export const raw = rulesOf("raw");

/** Chains that we make; everything in them is ours. */
export const CHAINS = [
  "ISTIO_INBOUND",
  "ISTIO_IN_REDIRECT",
  "ISTIO_OUTPUT",
  "ISTIO_OUTPUT_DNS",
  "ISTIO_REDIRECT",
  "ISTIO_DIVERT",
  "ISTIO_TPROXY",
  "ISTIO_DROP",
] as const;

const OUR_CHAINS: ReadonlySet<string> = new Set(CHAINS);
const BUILT_IN: ReadonlySet<string> = new Set(["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"]);

export function isOurChain(chain: string): boolean {
  return OUR_CHAINS.has(chain);
}

/** Chains that every table has from the kernel: never made, never removed. */
export function isBuiltInChain(chain: string): boolean {
  return BUILT_IN.has(chain);
}

function rulesOf(table: Table): TableRules {
  return {
    append: (chain, spec, why) => ({ table, chain, position: undefined, ...spec, why }),
    insert: ({ chain, position }, spec, why) => ({ table, chain, position, ...spec, why }),
  };
}
