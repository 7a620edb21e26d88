/** The functions that every template has; `and` and `or` are part of the language. */
import { isPrintable, plain, sprint, sprintf, sprintln } from "./format.ts";
import { CallError } from "./template-error.ts";
import { bytesOf, type Callable, isList, isMap, isTrue, itemOf, TextMap, typeName, type Value } from "./value.ts";

/** Functions by name. */
export type FunctionTable = ReadonlyMap<string, Callable>;

/** Names that the language itself has. */
export const LANGUAGE_FUNCTIONS: ReadonlySet<string> = new Set(["and", "or"]);

/** The functions of Go's text/template. */
export const BUILTIN_FUNCTIONS: Readonly<Record<string, Callable>> = {
  not: (value) => !isTrue(value),
  eq: (first, ...others) => {
    if (others.length === 0) throw new CallError("missing argument for comparison");
    return others.some((other) => isEqual(first, other));
  },
  ne: (a, b) => !isEqual(a, b),
  lt: (a, b) => isLess(a, b),
  le: (a, b) => isLess(a, b) || isEqual(a, b),
  gt: (a, b) => !(isLess(a, b) || isEqual(a, b)),
  ge: (a, b) => !isLess(a, b),
  len: lengthOf,
  index: (value, ...keys) => keys.reduce(indexed, value),
  slice: sliced,
  print: (...values) => sprint(values),
  println: (...values) => sprintln(values),
  printf: (format, ...values) => sprintf(textArgument(format), values),
  html: (...values) => htmlEscaped(sprint(values)),
  js: (...values) => jsEscaped(sprint(values)),
  urlquery: (...values) => queryEscaped(sprint(values)),
  call: (called, ...args) => {
    if (called === null || called === undefined) throw new CallError("call of nil");
    if (typeof called !== "function") throw new CallError(`non-function of type ${typeName(called)}`);
    return called(...args);
  },
};

/** An argument that must be a string. */
export function textArgument(value: Value): string {
  if (typeof value === "string") return value;
  if (value === undefined || value === null) throw new CallError("invalid value; expected string");
  throw new CallError(`wrong type for value; expected string; got ${typeName(value)}`);
}

/** An argument that must be a whole number. */
export function wholeArgument(value: Value): number {
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "number" && Number.isInteger(value)) return value;
  throw new CallError(`wrong type for value; expected int; got ${typeName(value)}`);
}

function isEqual(a: Value, b: Value): boolean {
  const [noA, noB] = [a === null || a === undefined, b === null || b === undefined];
  if (noA || noB) return noA && noB;
  const [kindA, kindB] = [comparedKind(a), comparedKind(b)];
  if (kindA !== kindB) throw new CallError("incompatible types for comparison");
  if (kindA === "")
    throw new CallError(`non-comparable types ${plain(a)}: ${typeName(a)}, ${plain(b)}: ${typeName(b)}`);
  return a === b;
}

function isLess(a: Value, b: Value): boolean {
  const [kindA, kindB] = [comparedKind(a), comparedKind(b)];
  if (kindA === "" || kindB === "" || kindA === "boolean") throw new CallError("invalid type for comparison");
  if (kindA !== kindB) throw new CallError("incompatible types for comparison");
  if (typeof a === "string" && typeof b === "string") return Buffer.compare(bytesOf(a), bytesOf(b)) < 0;
  return Number(a) < Number(b);
}

function comparedKind(value: Value): string {
  return ["string", "boolean", "bigint", "number"].includes(typeof value) ? typeof value : "";
}

function lengthOf(value: Value): bigint {
  if (value === null || value === undefined) throw new CallError("len of nil pointer");
  if (typeof value === "string") return BigInt(bytesOf(value).length);
  if (isList(value)) return BigInt(value.length);
  if (value instanceof TextMap) return BigInt(value.entries.size);
  if (isMap(value)) return BigInt(Object.keys(value).length);
  throw new CallError(`len of type ${typeName(value)}`);
}

function indexed(value: Value, key: Value): Value {
  if (value === null || value === undefined) throw new CallError("index of untyped nil");
  if (isMap(value)) {
    if (typeof key !== "string") throw new CallError(`value has type ${typeName(key)}; should be string`);
    return itemOf(value, key);
  }
  if (!isList(value) && typeof value !== "string") throw new CallError(`can't index item of type ${typeName(value)}`);
  const items = typeof value === "string" ? bytesOf(value) : value;
  const at = indexArgument(key, items.length - 1);
  const item = items[at];
  return typeof value === "string" ? BigInt(Number(item)) : (item as Value);
}

function indexArgument(key: Value, most: number): number {
  if (key === null || key === undefined) throw new CallError("cannot index slice/array with nil");
  if (typeof key !== "bigint") throw new CallError(`cannot index slice/array with type ${typeName(key)}`);
  if (key < 0n || key > BigInt(most)) throw new CallError(`index out of range: ${key}`);
  return Number(key);
}

function sliced(value: Value, ...bounds: readonly Value[]): Value {
  if (value === null || value === undefined) throw new CallError("slice of untyped nil");
  if (bounds.length > 3) throw new CallError(`too many slice indexes: ${bounds.length}`);
  if (typeof value === "string" && bounds.length === 3) throw new CallError("cannot 3-index slice a string");
  if (typeof value !== "string" && !isList(value)) throw new CallError(`can't slice item of type ${typeName(value)}`);
  const items = typeof value === "string" ? bytesOf(value) : value;
  const [start = 0, end = items.length] = bounds.map((bound) => indexArgument(bound, items.length));
  if (start > end) throw new CallError(`invalid slice index: ${start} > ${end}`);
  return typeof value === "string" ? bytesOf(value).subarray(start, end).toString() : value.slice(start, end);
}

const HTML: Readonly<Record<string, string>> = {
  "\0": "\uFFFD",
  '"': "&#34;",
  "'": "&#39;",
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
};

function htmlEscaped(text: string): string {
  return text.replace(/[\0"'&<>]/g, (letter) => HTML[letter] ?? letter);
}

const JS: Readonly<Record<string, string>> = { "\\": "\\\\", "'": "\\'", '"': '\\"' };

function jsEscaped(text: string): string {
  return [...text]
    .map((letter) => {
      const code = letter.codePointAt(0) ?? 0;
      const needsCode = "<>&=".includes(letter) || code < 0x20 || !isPrintable(letter);
      return (
        JS[letter] ?? (needsCode && code !== 0x7f ? `\\u${code.toString(16).toUpperCase().padStart(4, "0")}` : letter)
      );
    })
    .join("");
}

/** Go's url.QueryEscape. */
function queryEscaped(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("%20", "+");
}
