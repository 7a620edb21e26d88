/** The rules as one back end has them, with their words. */

import { formatSpec } from "../iptables/rule-text.ts";
import { type InetRule, inetRules } from "../nftables/inet-rules.ts";
import { formatNftRule } from "../nftables/ruleset.ts";
import { captureRules } from "../rules/capture-rules.ts";
import type { Dialect } from "../rules/family.ts";
import type { Family, Rule } from "../settings/rule.ts";
import type { CaptureSettings } from "../settings/settings.ts";

export interface WordedRule extends Rule {
  /** Matches and target, as the back end writes them. */
  readonly text: string;
}

/**
 * Rules that packets of one family meet, in order. With nftables both families share a table, so that rules which name no
 * address concern IPv6 even where it is not asked for.
 */
export function ruleBook(settings: CaptureSettings, family: Family, dialect: Dialect): readonly WordedRule[] {
  if (dialect === "iptables")
    return captureRules(settings, family).map((rule) => ({ ...rule, text: formatSpec(rule) }));
  return inetRules(settings)
    .filter((rule: InetRule) => rule.family === undefined || rule.family === family)
    .map((rule) => ({ ...rule, text: formatNftRule(rule) }));
}
