/** Label selectors as command lines have them: `app=web,version!=v1,track in (a, b),!canary`. */
import type { LabelExpression, LabelSelector } from "./label-selector.ts";

const SET = /^([^\s=!(),]+)\s+(in|notin)\s*\(([^()]*)\)$/;
const EQUAL = /^([^\s=!(),]+)\s*(==?|!=)\s*([^\s=!(),]*)$/;
const PRESENT = /^(!?)\s*([^\s=!(),]+)$/;

/** The selector that a text stands for, or the part of it that cannot be read. */
export function parseSelector(text: string): LabelSelector | { readonly wrong: string } {
  // A comma between brackets is one between values.
  const parts = text.split(/,(?![^()]*\))/).map((part) => part.trim());
  const matchExpressions: LabelExpression[] = [];
  for (const part of parts) {
    const expression = parseExpression(part);
    if (expression === undefined) return { wrong: part };
    matchExpressions.push(expression);
  }
  return { matchExpressions };
}

function parseExpression(text: string): LabelExpression | undefined {
  const [, setKey, word, list = ""] = SET.exec(text) ?? [];
  if (setKey !== undefined) {
    const values = list.split(",").map((value) => value.trim());
    return { key: setKey, operator: word === "in" ? "In" : "NotIn", values };
  }
  const [, key, sign, value = ""] = EQUAL.exec(text) ?? [];
  if (key !== undefined) return { key, operator: sign === "!=" ? "NotIn" : "In", values: [value] };
  const [, not, present] = PRESENT.exec(text) ?? [];
  if (present === undefined) return undefined;
  return { key: present, operator: not === "!" ? "DoesNotExist" : "Exists" };
}
