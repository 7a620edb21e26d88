/** Sprig's functions on text. The text is the last argument, so that it can come from a pipeline. */

import { withoutEnds } from "@mizzen/go-text/trim";
import { plain, quoted } from "../format.ts";
import { textArgument as text, wholeArgument as whole } from "../functions.ts";
import { CallError } from "../template-error.ts";
import { type Callable, isList, TextMap, type Value } from "../value.ts";

/** A value as text: nil is empty. */
export function strval(value: Value): string {
  return value === null || value === undefined ? "" : plain(value);
}

/** A list as texts; nils are left out. */
function strslice(value: Value): string[] {
  if (isList(value)) return value.filter((item) => item !== null && item !== undefined).map(strval);
  return value === null || value === undefined ? [] : [strval(value)];
}

export const TEXT_FUNCTIONS: Readonly<Record<string, Callable>> = {
  trim: (value) => goTrim(text(value)),
  trimAll: (letters, value) => trimLetters(text(value), text(letters)),
  trimall: (letters, value) => trimLetters(text(value), text(letters)),
  trimPrefix: (prefix, value) => {
    const whole = text(value);
    return whole.startsWith(text(prefix)) ? whole.slice(text(prefix).length) : whole;
  },
  trimSuffix: (suffix, value) => {
    const [whole, end] = [text(value), text(suffix)];
    return end !== "" && whole.endsWith(end) ? whole.slice(0, -end.length) : whole;
  },
  upper: (value) => text(value).toUpperCase(),
  lower: (value) => text(value).toLowerCase(),
  toLower: (value) => text(value).toLowerCase(),
  repeat: (count, value) => repeated(text(value), whole(count)),
  substr: (start, end, value) => substring(text(value), whole(start), whole(end)),
  nospace: (value) => text(value).replace(/\s/gu, ""),
  trunc: (length, value) => truncated(text(value), whole(length)),
  contains: (part, value) => text(value).includes(text(part)),
  hasPrefix: (prefix, value) => text(value).startsWith(text(prefix)),
  hasSuffix: (suffix, value) => text(value).endsWith(text(suffix)),
  quote: (...values) =>
    present(values)
      .map((value) => quoted(strval(value)))
      .join(" "),
  squote: (...values) =>
    present(values)
      .map((value) => `'${strval(value)}'`)
      .join(" "),
  cat: (...values) => present(values).map(plain).join(" "),
  indent: (spaces, value) => indented(text(value), whole(spaces)),
  nindent: (spaces, value) => `\n${indented(text(value), whole(spaces))}`,
  replace: (from, to, value) => text(value).replaceAll(text(from), () => text(to)),
  join: (separator, list) => strslice(list).join(text(separator)),
  splitList: (separator, value) => text(value).split(text(separator)),
  split: (separator, value) => numbered(text(value).split(text(separator))),
  splitn: (separator, count, value) => numbered(splitAtMost(text(value), text(separator), whole(count))),
  sortAlpha: (list) => strslice(list).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
  toString: strval,
  toStrings: strslice,
};

/** `_0`, `_1` and so on. */
function numbered(parts: readonly string[]): TextMap {
  return new TextMap(Object.fromEntries(parts.map((part, index) => [`_${index}`, part])));
}

/** The last part holds the rest. */
function splitAtMost(value: string, separator: string, count: number): readonly string[] {
  if (count === 0) return [];
  const parts = value.split(separator);
  if (count < 0 || parts.length <= count) return parts;
  return [...parts.slice(0, count - 1), parts.slice(count - 1).join(separator)];
}

function present(values: readonly Value[]): readonly Value[] {
  return values.filter((value) => value !== null && value !== undefined);
}

/** Go's TrimSpace. */
function goTrim(value: string): string {
  let trimmed = value.trim();
  while (trimmed.startsWith("\u0085") || trimmed.endsWith("\u0085")) trimmed = withoutEnds(trimmed, "\u0085").trim();
  return trimmed;
}

function trimLetters(value: string, letters: string): string {
  const all = [...value];
  const isOne = (letter: string) => letters.includes(letter);
  const start = all.findIndex((letter) => !isOne(letter));
  return start < 0 ? "" : all.slice(start, all.findLastIndex((letter) => !isOne(letter)) + 1).join("");
}

/** More than any template has a use for. */
const LARGEST_REPEAT = 1024 * 1024;

function repeated(value: string, count: number): string {
  if (count < 0) throw new CallError("negative Repeat count");
  if (value.length * count > LARGEST_REPEAT) throw new CallError(`more than ${LARGEST_REPEAT} letters`);
  return value.repeat(count);
}

function substring(value: string, start: number, end: number): string {
  if (start < 0) return value.slice(0, end);
  return end < 0 || end > value.length ? value.slice(start) : value.slice(start, end);
}

function truncated(value: string, length: number): string {
  if (length < 0 && value.length + length > 0) return value.slice(value.length + length);
  return length >= 0 && value.length > length ? value.slice(0, length) : value;
}

function indented(value: string, spaces: number): string {
  const pad = repeated(" ", spaces);
  const lines = value.split("\n").length;
  if (lines * spaces > LARGEST_REPEAT) throw new CallError(`more than ${LARGEST_REPEAT} letters`);
  return pad + value.replaceAll("\n", `\n${pad}`);
}
