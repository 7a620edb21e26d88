/** Plans and walks for programs. */
import type { CaptureSettings } from "../../settings/settings.ts";
import { nameEnd } from "../end.ts";
import type { AskedPacket } from "../packet-flags.ts";
import type { Plan } from "../plan.ts";
import { reason } from "../reason.ts";
import type { WordedRule } from "../rule-book.ts";
import type { Walk } from "../walk.ts";

export function planJson({ mode, dialect, families }: Plan): string {
  return json({
    mode,
    dialect,
    families: families.map(({ family, groups, further }) => ({
      family,
      groups: groups.map(({ group, flows }) => ({
        group,
        flows: flows.map(({ steps, ...flow }) => ({ ...flow, rules: steps.map(ruleJson) })),
      })),
      furtherRules: further.map(ruleJson),
    })),
  });
}

export function walkJson({ steps, end }: Walk<WordedRule>, asked: AskedPacket, settings: CaptureSettings): string {
  return json({
    ...asked,
    end: { ...end, label: nameEnd(end, settings).label },
    why: reason(steps),
    rules: steps.map(ruleJson),
  });
}

function ruleJson({ table, chain, text, why }: WordedRule): object {
  return { table, chain, rule: text, why };
}

function json(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
