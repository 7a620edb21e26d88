/** Settings of an installation: those of the chart, of a profile, of files and of `--set`, each over the ones before. */
import { isRecord } from "#lib/json/is-record.ts";
import { MeshError } from "#lib/mesh-error.ts";

export type Values = Readonly<Record<string, unknown>>;

/** Lays settings over others: objects field by field, everything else as a whole; null takes a setting away. */
export function overlaid(base: Values, over: Values): Values {
  return laidOver(base, over, false);
}

/** Two things that are asked for as one: like `overlaid()`, but null stays, so that it takes away what neither of them said. */
export function joined(base: Values, over: Values): Values {
  return laidOver(base, over, true);
}

function laidOver(base: Values, over: Values, keepsNull: boolean): Values {
  const result: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(over)) {
    const before = result[name];
    if (value === null && !keepsNull) delete result[name];
    else result[name] = isRecord(value) && isRecord(before) ? laidOver(before, value, keepsNull) : value;
  }
  return result;
}

/** A field, or an item of a list: by its place, or by what one of its fields is. */
type Step = string | number | Selector;
interface Selector {
  readonly field: string;
  readonly value: string;
}

/** One `--set`. */
export interface Setting {
  /** As it was written. */
  readonly text: string;
  readonly path: readonly [string, ...(readonly Step[])];
  readonly value: unknown;
}

/**
 * Reads `a.b=c`, as Helm and istioctl do: `\\.` is a dot in a name, `[0]` an item of a list, `[name:x]` the item with that name,
 * `{a,b}` a list, and bare words have types.
 */
export function parseSetting(text: string): Setting {
  const equals = text.search(/(?<!\\)=/);
  if (equals <= 0) throw new MeshError("INSTALL_INVALID", `--set ${text}: write name=value`);
  const [first, ...rest] = stepsOf(text.slice(0, equals)) ?? [];
  if (typeof first !== "string")
    throw new MeshError("INSTALL_INVALID", `--set ${text}: "${text.slice(0, equals)}" is no name`);
  const value = text.slice(equals + 1);
  const path: Setting["path"] = [first, ...rest];
  return { text, path, value: isText(path) ? value.replaceAll("\\,", ",") : typed(value) };
}

/** Puts a setting into others. An item behind the end of a list is added to it. Throws a MeshError where there is no such item. */
export function withSetting(settings: Values, { text, path, value }: Setting): Values {
  const missing = ({ field, value: wanted }: Selector) =>
    new MeshError("INSTALL_INVALID", `--set ${text}: there is no item with ${field} "${wanted}" in the list`);
  return placed(settings, path, { value, missing }) as Values;
}

interface Placing {
  readonly value: unknown;
  readonly missing: (selector: Selector) => MeshError;
}

function placed(base: unknown, [step, ...rest]: readonly Step[], placing: Placing): unknown {
  if (step === undefined) return placing.value;
  if (typeof step === "string") {
    const before = isRecord(base) ? base : {};
    return { ...before, [step]: placed(before[step], rest, placing) };
  }
  const before: readonly unknown[] = Array.isArray(base) ? base : [];
  const at = typeof step === "number" ? step : before.findIndex((item) => matches(item, step));
  if (typeof step !== "number" && at < 0) throw placing.missing(step);
  if (at < 0 || at >= before.length) return [...before, placed(undefined, rest, placing)];
  return before.map((item, i) => (i === at ? placed(item, rest, placing) : item));
}

function matches(item: unknown, { field, value }: Selector): boolean {
  return isRecord(item) && String(item[field]) === value;
}

const UNSAFE_NAMES = ["__proto__", "constructor", "prototype"];

/** `a[0].b`, `a.[0].b` and `a.[name:x].b` alike. */
function stepsOf(text: string): readonly Step[] | undefined {
  const steps: Step[] = [];
  for (const part of text.split(/(?<!\\)\./)) {
    const [whole, name = "", items = ""] = /^([^[\]]*)((?:\[[^[\]]+\])*)$/.exec(part) ?? [];
    if (whole === undefined || whole === "" || UNSAFE_NAMES.includes(name)) return undefined;
    if (name !== "") steps.push(name.replaceAll("\\.", "."));
    for (const [, item = ""] of items.matchAll(/\[([^[\]]+)\]/g)) {
      const step = itemStep(item);
      if (step === undefined) return undefined;
      steps.push(step);
    }
  }
  return steps;
}

function itemStep(item: string): Step | undefined {
  if (/^(-1|\d{1,9})$/.test(item)) return Number(item);
  const [, field, value] = /^([^:]+):(.+)$/.exec(item) ?? [];
  return field === undefined || value === undefined ? undefined : { field, value: value.replaceAll("\\.", ".") };
}

/** What has to be text though it may look like a number or a truth: versions, and environment of proxies. */
function isText(path: readonly Step[]): boolean {
  return path.at(-1) === "tag" || path.at(-2) === "proxyMetadata";
}

function typed(text: string): unknown {
  if (/^\{.*\}$/s.test(text))
    return text
      .slice(1, -1)
      .split(/(?<!\\),/)
      .filter((item) => item !== "")
      .map(typed);
  if (text === "null") return null;
  if (/^(true|True|TRUE)$/.test(text)) return true;
  if (/^(false|False|FALSE)$/.test(text)) return false;
  if (/^-?(0|[1-9]\d{0,14})$/.test(text)) return Number(text);
  return text.replaceAll("\\,", ",");
}
