import type { WordedRule } from "../rule-book.ts";

/** Longer texts are not waited for by the reasons of the others. */
const TEXT_WIDTH = 72;

/** Rules as a table of place, text and reason. */
export function formatSteps(rules: readonly WordedRule[], indent: string): readonly string[] {
  const places = Math.max(0, ...rules.map((rule) => placeOf(rule).length));
  const texts = Math.min(TEXT_WIDTH, Math.max(0, ...rules.map(({ text }) => text.length)));
  return rules.map((rule) => `${indent}${placeOf(rule).padEnd(places)}  ${rule.text.padEnd(texts)}  # ${rule.why}`);
}

function placeOf({ table, chain }: WordedRule): string {
  return `${table} ${chain}`;
}
