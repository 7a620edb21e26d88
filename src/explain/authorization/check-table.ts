/** The table of `authz check`: which policies a proxy enforces, with the number of their rules. */

/** One RBAC filter: what it does, and the names of its rules. */
export interface RbacFilter {
  readonly action: "ALLOW" | "DENY" | "LOG";
  readonly rules: readonly string[];
  /** Rules whose verdict is recorded only. */
  readonly shadowRules: readonly string[];
}

const ORDER = ["DENY", "ALLOW", "LOG", "CUSTOM"] as const;
/** Istio's name for a filter that has no rule of its own. */
const WITHOUT_RULES = "_anonymous_match_nothing_";
const CUSTOM_PREFIX = "istio-ext-authz-";

type Row = readonly [action: string, policy: string, rules: string];

/** Rows of the table, the head first. */
export function checkTable(filters: readonly RbacFilter[]): readonly [Row, ...Row[]] {
  const found = filters.flatMap(({ action, rules, shadowRules }) => [
    ...rules.map((name) => ({ action, ...nameOfRule(name) })),
    ...(rules.length === 0 ? [{ action, policy: WITHOUT_RULES, rule: "0" }] : []),
    ...shadowRules
      .filter((name) => name.startsWith(CUSTOM_PREFIX))
      .map((name) => ({ action: "CUSTOM" as const, ...nameOfRule(name) })),
  ]);
  const rows = ORDER.flatMap((action) => {
    const byPolicy = Map.groupBy(
      found.filter((one) => one.action === action),
      ({ policy }) => policy,
    );
    const sorted = [...byPolicy].sort(([a], [b]) => (a < b ? -1 : 1));
    return sorted.map(([policy, rules]): Row => [action, policy, String(new Set(rules.map(({ rule }) => rule)).size)]);
  });
  return [["ACTION", "AuthorizationPolicy", "RULES"], ...rows];
}

function nameOfRule(name: string): { readonly policy: string; readonly rule: string } {
  const [, namespace = "", policy = "", rule = ""] =
    /ns\[(.+)\]-policy\[(.*)\]-(?:rule\[(.+)\]|unreadable)/.exec(name) ?? [];
  return { policy: `${policy}.${namespace}`, rule };
}
