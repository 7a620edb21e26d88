/** One rule of iptables, as a value. */

export type Family = "v4" | "v6";
export type Table = "filter" | "mangle" | "nat" | "raw";

export interface Rule {
  readonly table: Table;
  readonly chain: string;
  /** Where to insert it, counted from 1; undefined appends. */
  readonly position: number | undefined;
  /** Matches and target in iptables' own words, such as `-p tcp --dport 15008 -j RETURN`. */
  readonly spec: string;
  /** What the rule is for. */
  readonly why: string;
}

export interface TableRules {
  append(chain: string, spec: string, why: string): Rule;
  insert(at: { readonly chain: string; readonly position: number }, spec: string, why: string): Rule;
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
    append: (chain, spec, why) => ({ table, chain, position: undefined, spec, why }),
    insert: ({ chain, position }, spec, why) => ({ table, chain, position, spec, why }),
  };
}
