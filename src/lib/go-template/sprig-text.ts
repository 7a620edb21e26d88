/** Sprig's functions on text. The text is the last argument, so that it can come from a pipeline. */
import { createHash } from "node:crypto";
import { plain, quoted } from "./format.ts";
import { textArgument as text, wholeArgument as whole } from "./functions.ts";
import { CallError } from "./template-error.ts";
import { type Callable, isList, type Value } from "./value.ts";

/** A value as text: nil is empty. */
export function strval(value: Value): string {
  return value === null || value === undefined ? "" : plain(value);
}

/** A list as texts; nils are left out. */
export function strslice(value: Value): string[] {
  if (isList(value)) return value.filter((item) => item !== null && item !== undefined).map(strval);
  return value === null || value === undefined ? [] : [strval(value)];
}

export const TEXT_FUNCTIONS: Readonly<Record<string, Callable>> = {
  trim: (value) => goTrim(text(value)),
  trimAll: (letters, value) => trimLetters(text(value), text(letters)),
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
  title: (value) =>
    text(value).replace(
      /(^|[^\p{L}\p{N}_'])(\p{L})/gu,
      (_, before: string, letter: string) => before + letter.toUpperCase(),
    ),
  untitle: (value) =>
    text(value).replace(/(^|\s)(\p{L})/gu, (_, before: string, letter: string) => before + letter.toLowerCase()),
  repeat: (count, value) => repeated(text(value), whole(count)),
  substr: (start, end, value) => substring(text(value), whole(start), whole(end)),
  nospace: (value) => text(value).replace(/\s/gu, ""),
  trunc: (length, value) => truncated(text(value), whole(length)),
  abbrev: (width, value) => abbreviated(text(value), whole(width)),
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
  plural: (one, many, count) => (whole(count) === 1 ? text(one) : text(many)),
  snakecase: (value) => words(text(value)).join("_").toLowerCase(),
  kebabcase: (value) => words(text(value)).join("-").toLowerCase(),
  initials: (value) =>
    text(value)
      .split(/\s+/u)
      .map((word) => [...word][0] ?? "")
      .join(""),
  join: (separator, list) => strslice(list).join(text(separator)),
  splitList: (separator, value) => text(value).split(text(separator)),
  split: (separator, value) =>
    Object.fromEntries(
      text(value)
        .split(text(separator))
        .map((part, index) => [`_${index}`, part]),
    ),
  sortAlpha: (list) => strslice(list).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
  toString: strval,
  toStrings: strslice,
  b64enc: (value) => Buffer.from(text(value)).toString("base64"),
  b64dec: (value) => Buffer.from(text(value), "base64").toString(),
  sha1sum: (value) => createHash("sha1").update(text(value)).digest("hex"),
  sha256sum: (value) => createHash("sha256").update(text(value)).digest("hex"),
  base: (path) => text(path).replace(/\/+$/, "").split("/").at(-1) || (text(path) === "" ? "." : "/"),
  ext: (path) => /\.[^./]*$/.exec(text(path))?.[0] ?? "",
};

function present(values: readonly Value[]): readonly Value[] {
  return values.filter((value) => value !== null && value !== undefined);
}

/** Go's TrimSpace. */
function goTrim(value: string): string {
  return value.replace(/^[\s\u0085]+|[\s\u0085]+$/gu, "");
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

function abbreviated(value: string, width: number): string {
  return width < 4 || [...value].length <= width ? value : `${[...value].slice(0, width - 3).join("")}...`;
}

function indented(value: string, spaces: number): string {
  const pad = repeated(" ", spaces);
  return pad + value.replaceAll("\n", `\n${pad}`);
}

function words(value: string): string[] {
  return value
    .replace(/([\p{Ll}\d])(\p{Lu})/gu, "$1 $2")
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1 $2")
    .split(/[\s_\-.]+/u)
    .filter((word) => word !== "");
}
