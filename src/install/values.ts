/** Settings of an installation: those of the chart, of a profile, of files and of `--set`, each over the ones before. */
import { isRecord } from "#lib/is-record.ts";
import { MeshError } from "#lib/mesh-error.ts";

export type Values = Readonly<Record<string, unknown>>;

/** Lays settings over others: objects field by field, everything else as a whole; null takes a setting away. */
export function overlaid(base: Values, over: Values): Values {
  const result: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(over)) {
    const before = result[name];
    if (value === null) delete result[name];
    else result[name] = isRecord(value) && isRecord(before) ? overlaid(before, value) : value;
  }
  return result;
}

/**
 * Puts `a.b=c` into settings, as Helm reads it: `\\.` is a dot in a name, `[0]` an item of a list, `{a,b}` a list, and bare words
 * have types.
 */
export function withSet(settings: Values, text: string): Values {
  const equals = text.search(/(?<!\\)=/);
  if (equals <= 0) throw new MeshError("INSTALL_INVALID", `--set ${text}: write name=value`);
  const path = pathOf(text.slice(0, equals));
  if (path === undefined)
    throw new MeshError("INSTALL_INVALID", `--set ${text}: "${text.slice(0, equals)}" is no name`);
  return placed(settings, path, typed(text.slice(equals + 1))) as Values;
}

type Step = string | number;

function placed(base: unknown, [step, ...rest]: readonly Step[], value: unknown): unknown {
  if (step === undefined) return value;
  if (typeof step === "string") {
    const before = isRecord(base) ? base : {};
    return { ...before, [step]: placed(before[step], rest, value) };
  }
  const before: readonly unknown[] = Array.isArray(base) ? base : [];
  const length = Math.max(before.length, step + 1);
  return Array.from({ length }, (_, i) => (i === step ? placed(before[i], rest, value) : (before[i] ?? null)));
}

const LONGEST_LIST = 1_000;

function pathOf(text: string): readonly Step[] | undefined {
  const steps: Step[] = [];
  for (const part of text.split(/(?<!\\)\./)) {
    const [, name = "", indexes = ""] = /^((?:[^[\]])*)((?:\[\d+\])*)$/.exec(part) ?? [];
    if (name === "" || ["__proto__", "constructor", "prototype"].includes(name)) return undefined;
    const numbers = [...indexes.matchAll(/\d+/g)].map(([digits]) => Number(digits));
    if (numbers.some((number) => number > LONGEST_LIST)) return undefined;
    steps.push(name.replaceAll("\\.", "."), ...numbers);
  }
  return steps;
}

function typed(text: string): unknown {
  if (/^\{.*\}$/s.test(text))
    return text
      .slice(1, -1)
      .split(/(?<!\\),/)
      .filter((item) => item !== "")
      .map(typed);
  if (text === "null") return null;
  if (text === "true" || text === "false") return text === "true";
  if (/^-?(0|[1-9]\d{0,14})$/.test(text)) return Number(text);
  return text.replaceAll("\\,", ",");
}
