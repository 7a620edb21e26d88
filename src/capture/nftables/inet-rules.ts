/**
 * The rules for nftables, where both address families share one list. Rules about addresses belong to one family; all
 * others would be the same twice.
 */

import { familyEnabled, ruleSections } from "../rules/capture-rules.ts";
import { familySettings } from "../rules/family.ts";
import type { Family, Rule } from "../settings/rule.ts";
import type { CaptureSettings } from "../settings/settings.ts";

export interface InetRule extends Rule {
  /** Undefined where it holds for both. */
  readonly family: Family | undefined;
}

/** Ordered rules of both families. */
export function inetRules(settings: CaptureSettings): readonly InetRule[] {
  const sections = (family: Family) =>
    familyEnabled(settings, family) ? ruleSections(familySettings(settings, family, "nftables")) : [];
  const v6 = sections("v6");
  return sections("v4").flatMap((section, index) => mergeFamilies(section, v6[index] ?? []));
}

/** IPv4 before IPv6 between any two rules that both have. */
function mergeFamilies(v4: readonly Rule[], v6: readonly Rule[]): readonly InetRule[] {
  const merged: InetRule[] = [];
  let next = 0;
  for (const rule of v4.map((one) => inetRule(one, "v4"))) {
    if (rule.family === undefined) {
      const same = v6.findIndex((other, index) => index >= next && sameRule(other, rule));
      merged.push(...v6.slice(next, Math.max(same, next)).map((one) => inetRule(one, "v6")));
      if (same >= 0) next = same + 1;
    }
    merged.push(rule);
  }
  return [...merged, ...v6.slice(next).map((one) => inetRule(one, "v6"))];
}

function inetRule(rule: Rule, family: Family): InetRule {
  const ofOneFamily = rule.target.kind === "tproxy" || rule.matches.some((match) => match.kind === "address");
  return { ...rule, family: ofOneFamily ? family : undefined };
}

function sameRule(a: Rule, b: Rule): boolean {
  const identity = ({ table, chain, position, matches, target }: Rule) =>
    JSON.stringify([table, chain, position, matches, target]);
  return identity(a) === identity(b);
}
