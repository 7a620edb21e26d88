import type { Rule, Table } from "../settings/rule.ts";

/** Rules by table and chain, in the order in which the kernel tries them. */
export type Chains<R extends Rule> = ReadonlyMap<Table, ReadonlyMap<string, readonly R[]>>;

/** What rules give in empty tables when they are applied one after another. */
export function chainsOf<R extends Rule>(rules: readonly R[]): Chains<R> {
  const tables = new Map<Table, Map<string, R[]>>();
  for (const rule of rules) {
    const table = tables.get(rule.table) ?? new Map<string, R[]>();
    const chain = table.get(rule.chain) ?? [];
    chain.splice(rule.position === undefined ? chain.length : rule.position - 1, 0, rule);
    tables.set(rule.table, table.set(rule.chain, chain));
  }
  return tables;
}
