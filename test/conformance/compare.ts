/** Equal or not, and if not a difference that people can read. */
import { diff, isDeepStrictEqual } from "node:util";
import type { Outcome } from "./harness.ts";

/** Compares texts line by line, without white space around them. */
export function compareText(actual: string, expected: string): Outcome {
  const [got, want] = [actual.trim(), expected.trim()];
  return got === want ? "passed" : { differs: () => lineDifference(got.split("\n"), want.split("\n")) };
}

/** Compares JSON values; the order of keys does not matter, that of lists does. */
export function compareJson(actual: unknown, expected: unknown): Outcome {
  if (isDeepStrictEqual(actual, expected)) return "passed";
  return { differs: () => lineDifference(lines(actual), lines(expected)) };
}

/** The first outcome that is not "passed". */
export function firstOf(outcomes: readonly Outcome[]): Outcome {
  return outcomes.find((outcome) => outcome !== "passed") ?? "passed";
}

const CONTEXT = 3;

/** `-` is what Istio has and we do not, `+` what we have and Istio does not. */
function lineDifference(actual: readonly string[], expected: readonly string[]): string {
  const entries = diff(actual, expected);
  const near = entries.map((_, at) =>
    entries.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some(([kind]) => kind !== 0),
  );
  const shown = entries.flatMap(([kind, line], at) => {
    if (!near[at]) return near[at - 1] ? ["  ..."] : [];
    return [`${kind === 0 ? " " : kind > 0 ? "+" : "-"} ${line}`];
  });
  return shown.join("\n");
}

function lines(value: unknown): readonly string[] {
  return (JSON.stringify(value, sortKeys, 1) ?? "undefined").split("\n");
}

function sortKeys(_key: string, value: unknown): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
