/**
 * From the rules that are there to the rules that are wanted, as one text for iptables-restore. Rules of other programs
 * are neither touched nor moved.
 */

import { isOurChain } from "../settings/rule.ts";
import { formatSections, jumpTarget, linesByTable } from "./restore.ts";
import type { RuleLine } from "./rule-text.ts";
import { canonicalSpec, type State, type TableState } from "./saved.ts";

export interface Reconciliation {
  /** Something of an earlier run is there. */
  readonly residue: boolean;
  /** What is there is exactly what is wanted, in order. */
  readonly inPlace: boolean;
  /** Input of `iptables-restore --noflush` that leads to the wanted rules; a table changes at once or not at all. */
  readonly text: string;
}

/**
 * What must be done so that exactly `wanted` is there; no rules means removing ours. Rules that are `known` are ours
 * wherever they stand.
 */
export function reconcile(current: State, wanted: readonly RuleLine[], known = wanted): Reconciliation {
  const own = new Map([...current].map(([table, chains]) => [table, ownPart(chains, specsByChain(table, known))]));
  const removals = new Map([...own].map(([table, chains]) => [table, removal(chains)]));
  const additions = linesByTable(wanted);
  const tables = new Set([...removals.keys(), ...additions.keys()]);
  const lines = new Map(
    [...tables].map((table) => [table, [...(removals.get(table) ?? []), ...(additions.get(table) ?? [])]]),
  );
  return {
    residue: [...removals.values()].some((some) => some.length > 0),
    inPlace: isInPlace(own, wanted),
    text: formatSections(lines),
  };
}

/** The same chains with the same rules in the same order. */
function isInPlace(own: State, wanted: readonly RuleLine[]): boolean {
  const tables = new Set([...own.keys(), ...wanted.map((rule) => rule.table)]);
  return [...tables].every((table) => describe(own.get(table) ?? new Map()) === describe(outcome(table, wanted)));
}

function describe(chains: TableState): string {
  return [...chains]
    .map(([chain, rules]) => [chain, ...rules.map(canonicalSpec)].join("\n"))
    .sort()
    .join("\n\n");
}

/** What the wanted rules give in an empty table. */
function outcome(table: string, wanted: readonly RuleLine[]): TableState {
  const chains = new Map<string, string[]>();
  for (const line of linesByTable(wanted).get(table) ?? []) {
    const made = /^-N (\S+)$/.exec(line)?.[1];
    if (made !== undefined) chains.set(made, []);
  }
  for (const rule of wanted.filter((one) => one.table === table)) {
    const rules = chains.get(rule.chain) ?? [];
    rules.splice(rule.position === undefined ? rules.length : rule.position - 1, 0, rule.spec);
    chains.set(rule.chain, rules);
  }
  return chains;
}

/** Canonical specs of the rules of one table, by chain. */
function specsByChain(table: string, rules: readonly RuleLine[]): ReadonlyMap<string, ReadonlySet<string>> {
  const specs = new Map<string, Set<string>>();
  for (const rule of rules.filter((one) => one.table === table)) {
    specs.set(rule.chain, (specs.get(rule.chain) ?? new Set()).add(canonicalSpec(rule.spec)));
  }
  return specs;
}

/** Our chains as a whole, and of all other chains the rules that are ours. */
function ownPart(chains: TableState, known: ReadonlyMap<string, ReadonlySet<string>>): TableState {
  const interfaces = ownInterfaces(chains);
  const marks = ownMarks(chains);
  const isOurs = (chain: string, spec: string) =>
    isOurChain(chain) ||
    isOurChain(jumpTarget(spec) ?? "") ||
    interfaces.has(spec) ||
    isTproxyMark(spec, marks) ||
    known.get(chain)?.has(canonicalSpec(spec)) === true;
  const own = [...chains].map(([chain, rules]) => [chain, rules.filter((spec) => isOurs(chain, spec))] as const);
  return new Map(own.filter(([chain, rules]) => isOurChain(chain) || rules.length > 0));
}

/**
 * Rules for whole interfaces jump to none of our chains, so they are known by their company: an excluded interface has
 * one for each direction, that of a virtual machine also a jump to one of our chains.
 */
function ownInterfaces(chains: TableState): ReadonlySet<string> {
  const inbound = chains.get("PREROUTING") ?? [];
  const outbound = chains.get("OUTPUT") ?? [];
  const own = new Set<string>();
  if (![...chains.keys()].some(isOurChain)) return own;
  for (const spec of inbound) {
    const name = /^-i (\S+) -j RETURN$/.exec(spec)?.[1];
    if (name === undefined) continue;
    const excluded = outbound.includes(`-o ${name} -j RETURN`);
    const virtual = inbound.some((other) => ` ${other} `.includes(` -i ${name} `) && jumpTarget(other) !== undefined);
    if (excluded || virtual) own.add(spec);
    if (excluded) own.add(`-o ${name} -j RETURN`);
  }
  return own;
}

/** Packet marks of TPROXY mode in a mangle table: our chains set them, or let pass what has them. */
export function ownMarks(chains: TableState): ReadonlySet<number> {
  const specs = [...(chains.get("ISTIO_DIVERT") ?? []), ...(chains.get("ISTIO_INBOUND") ?? [])];
  const marks = specs.map((spec) =>
    /^-j MARK --set-xmark (0x\w+)|^-p tcp -m mark --mark (0x\w+) -j RETURN$/.exec(spec),
  );
  return new Set(marks.flatMap((match) => (match === null ? [] : [Number(match[1] ?? match[2])])));
}

/** Rules by which TPROXY mode keeps its marks; they jump to none of our chains. */
function isTproxyMark(spec: string, marks: ReadonlySet<number>): boolean {
  if (marks.size === 0) return false;
  const mark =
    /^-p tcp -m (?:mark|connmark) --mark (0x\w+) -j CONNMARK --(?:save|restore)-mark/.exec(spec) ??
    /^-o lo -p tcp -m mark --mark (0x\w+) -j RETURN$/.exec(spec);
  if (mark !== null) return marks.has(Number(mark[1]));
  return /^! -d \S+ -o lo -p tcp -m owner --[ug]id-owner \d+ -j MARK --set-xmark 0x53a\/0xffffffff$/.test(spec);
}

/** Jumps go first: a chain that is in use cannot be removed. */
function removal(own: TableState): readonly string[] {
  const ours = [...own.keys()].filter(isOurChain);
  const others = [...own].filter(([chain]) => !isOurChain(chain));
  return [
    ...others.flatMap(([chain, rules]) => rules.map((spec) => `-D ${chain} ${spec}`)),
    ...ours.map((chain) => `-F ${chain}`),
    ...ours.map((chain) => `-X ${chain}`),
  ];
}
