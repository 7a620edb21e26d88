/** Lists of rules as text: for iptables-restore, and as single commands. */
import { isBuiltInChain } from "../settings/rule.ts";
import { formatLine, type RuleLine } from "./rule-text.ts";

/** Input of `iptables-restore --noflush`: a section per table, in order of name. Empty when there are no rules. */
export function formatRestore(rules: readonly RuleLine[]): string {
  return formatSections(linesByTable(rules));
}

/** Arguments of one iptables call per line. */
export function formatCommands(rules: readonly RuleLine[]): readonly string[] {
  const chains = chainsWithRules(rules).map(({ table, chain }) => `-t ${table} -N ${chain}`);
  return [...chains, ...rules.map((rule) => `-t ${rule.table} ${formatLine(rule)}`)];
}

/**
 * Arguments of one iptables call per line that take rules back, the last one first: those outside our chains and all jumps,
 * then our chains, which cannot be removed while something jumps to them.
 */
export function formatRemovals(rules: readonly RuleLine[]): readonly string[] {
  const reversed = rules.toReversed();
  const deletions = reversed.filter(({ chain, spec }) => isBuiltInChain(chain) || jumpTarget(spec) !== undefined);
  return [
    ...deletions.map(({ table, chain, spec }) => `-t ${table} -D ${chain} ${spec}`),
    ...chainsWithRules(reversed).flatMap(({ table, chain }) => [`-t ${table} -F ${chain}`, `-t ${table} -X ${chain}`]),
  ];
}

/** Lines of each table: its new chains, then its rules. */
export function linesByTable(rules: readonly RuleLine[]): Map<string, readonly string[]> {
  const tables = [...new Set(rules.map((rule) => rule.table))];
  const chains = newChains(rules);
  return new Map(
    tables.map((table) => [
      table,
      [
        ...chains.filter((chain) => chain.table === table).map(({ chain }) => `-N ${chain}`),
        ...rules.filter((rule) => rule.table === table).map(formatLine),
      ],
    ]),
  );
}

/** Text of iptables-restore from lines by table; tables without lines are left out. */
export function formatSections(tables: ReadonlyMap<string, readonly string[]>): string {
  return [...tables]
    .filter(([, lines]) => lines.length > 0)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([table, lines]) => [`* ${table}`, ...lines, "COMMIT", ""].join("\n"))
    .join("");
}

/** The chain a rule jumps to, if it jumps to one of ours. */
export function jumpTarget(spec: string): string | undefined {
  return /(?:^| )(?:-j|--jump) (ISTIO_\S+)/.exec(spec)?.[1];
}

type ChainOfTable = Pick<RuleLine, "table" | "chain">;

/** Chains that rules are put into, in order of appearance. */
function chainsWithRules(rules: readonly RuleLine[]): readonly ChainOfTable[] {
  return distinct(rules.filter((rule) => !isBuiltInChain(rule.chain)));
}

/** Also those that are only jumped to: a jump to a chain that does not exist is an error. */
function newChains(rules: readonly RuleLine[]): readonly ChainOfTable[] {
  const targets = rules.flatMap(({ table, spec }) => {
    const chain = jumpTarget(spec);
    return chain === undefined ? [] : [{ table, chain }];
  });
  return distinct([...chainsWithRules(rules), ...targets]);
}

function distinct(chains: readonly ChainOfTable[]): readonly ChainOfTable[] {
  return [...new Map(chains.map(({ table, chain }) => [`${table} ${chain}`, { table, chain }])).values()];
}
