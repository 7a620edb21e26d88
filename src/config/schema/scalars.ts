/** Scalars of the API as protobuf's JSON form has them: numbers may be quoted, enums may be numbers, bytes are base64. */

import { type Millis, parseDuration } from "@mizzen/go-text/duration";
import * as z from "zod";
import { field, rule } from "./field.ts";
import type { Schema } from "./message.ts";

/** Text. Numbers and booleans are refused: YAML reads an unquoted `1` or `on` as such. */
export function string(): Schema<string> {
  return TEXT;
}

/** A regular expression of RE2. `parse` limits what those of one object cost together. */
export function regex(): Schema<string> {
  return REGEX;
}

/** true or false. */
export function bool(): Schema<boolean> {
  return BOOL;
}

/** A whole number of 32 bits without sign. */
export function uint32(): Schema<number> {
  return UINT32;
}

/** A whole number of 32 bits. */
export function int32(): Schema<number> {
  return INT32;
}

/** A whole number of 64 bits without sign, as far as JavaScript counts exactly. */
export function uint64(): Schema<number> {
  return UINT64;
}

/** A whole number of 64 bits, as far as JavaScript counts exactly. */
export function int64(): Schema<number> {
  return INT64;
}

/** Any number. */
export function double(): Schema<number> {
  return DOUBLE;
}

/** Base64 text, kept as it was written. */
export function bytes(): Schema<string> {
  return BYTES;
}

/** A Go duration, yielded in milliseconds. */
export function duration(): Schema<Millis> {
  return DURATION;
}

/** A duration that the API server accepts only if it is positive. */
export function positiveDuration(): Schema<Millis> {
  return POSITIVE_DURATION;
}

/** The number of a port, which the API server accepts only from 1 to 65535. */
export function portNumber(): Schema<number> {
  return PORT_NUMBER;
}

/** A moment as Kubernetes writes it, yielded in milliseconds since 1970. */
export function time(): Schema<Millis> {
  return TIME;
}

/** One of the names, given by name or by number; the number of a name is its place in the list. */
export function enumeration<const Name extends string>(...names: readonly Name[]): Schema<Name> {
  const byName: ReadonlyMap<unknown, Name> = new Map<unknown, Name>([
    ...names.map((n) => [n, n] as const),
    ...names.entries(),
  ]);
  const byNumber = { type: "integer", minimum: 0, maximum: names.length - 1 };
  const schema = scalar(`must be one of ${names.join(", ")}`, { anyOf: [{ enum: [...names] }, byNumber] }, (raw) =>
    byName.get(raw),
  );
  ENUMERATIONS.add(defOf(schema));
  return schema;
}

/** Whether a schema is that of a regular expression, perhaps with facts of its field. */
export function isRegex(schema: z.core.$ZodType): boolean {
  return defOf(schema) === defOf(REGEX);
}

/** Whether a schema is that of data of any shape, perhaps with facts of its field. */
export function isStruct(schema: z.core.$ZodType): boolean {
  return defOf(schema) === defOf(STRUCT);
}

/** A schema with facts is a clone, which shares its definition. */
function defOf(schema: z.core.$ZodType): object {
  return schema._zod.def;
}

/** Whether a schema is that of an enumeration, perhaps with facts of its field. */
export function isEnumeration(schema: z.core.$ZodType): boolean {
  return ENUMERATIONS.has(defOf(schema));
}

/** Data of any shape, passed on untouched (google.protobuf.Struct). */
export function struct(): Schema<Readonly<Record<string, unknown>>> {
  return STRUCT;
}

/** A value that nobody here looks into. */
export function anything(): Schema<unknown> {
  return ANYTHING;
}

/** A port by number or by name, as Kubernetes allows for `targetPort`. */
export function intOrString(): Schema<number | string> {
  return INT_OR_STRING;
}

/** Numbers in quotes, as JSON writes them: `"080"` is none, and `"1e2"` no whole one. */
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/;
const WHOLE_NUMBER = /^-?(0|[1-9]\d*)$/;
/** As Go reads it: with its padding; ends of lines do not count. */
const BASE64 = /^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const BASE64_LINES = "^[A-Za-z0-9+/\\r\\n]*={0,2}[\\r\\n]*$";

const ENUMERATIONS = new WeakSet<object>();
const ANYTHING = z.unknown();
const MUST_BE_TEXT = "must be text";
const [TEXT, REGEX] = [text(), text()];
const BOOL = scalar("must be true or false", { type: "boolean" }, (raw) =>
  typeof raw === "boolean" ? raw : undefined,
);
const UINT32 = whole(0, 2 ** 32 - 1);
const INT32 = whole(-(2 ** 31), 2 ** 31 - 1);
const UINT64 = whole(0, Number.MAX_SAFE_INTEGER);
const INT64 = whole(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
const DOUBLE = scalar("must be a number", { type: ["number", "string"], pattern: NUMBER.source }, (raw) =>
  numberOf(raw, NUMBER),
);
const BYTES = scalar("must be base64 text", { type: "string", pattern: BASE64_LINES }, (raw) =>
  typeof raw === "string" && BASE64.test(raw.replace(/[\r\n]/g, "")) ? raw : undefined,
);
const DURATION = scalar(
  `must be a duration such as "10s", "1.5h" or "250ms"`,
  { type: "string", format: "go-duration", pattern: "^[+-]?(0|(\\d+\\.?\\d*|\\.\\d+)(ns|us|µs|μs|ms|s|m|h))+$" },
  (raw) => (typeof raw === "string" ? parseDuration(raw) : undefined),
);
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:\d\d)$/;
const TIME = scalar(`must be a time such as "2024-01-31T12:00:00Z"`, { type: "string", format: "date-time" }, (raw) => {
  const moment = typeof raw === "string" && MOMENT.test(raw) ? Date.parse(raw) : Number.NaN;
  return Number.isNaN(moment) ? undefined : moment;
});
const STRUCT = scalar("must be an object", { type: "object" }, (raw) =>
  typeof raw === "object" && raw !== null && !Array.isArray(raw)
    ? (raw as Readonly<Record<string, unknown>>)
    : undefined,
);
const INT_OR_STRING = scalar("must be a number or text", { type: ["integer", "string"] }, (raw) =>
  typeof raw === "string" || Number.isInteger(raw) ? (raw as number | string) : undefined,
);

const POSITIVE_DURATION = field(DURATION, {
  rules: [rule("duration(self) >= duration('1ms')", "must be a valid duration greater than 1ms")],
});
const PORT_NUMBER = field(UINT32, { rules: [rule("0 < self && self <= 65535", "port must be between 1-65535")] });

function text(): Schema<string> {
  return scalar(MUST_BE_TEXT, { type: "string" }, (raw) => (typeof raw === "string" ? raw : undefined));
}

function whole(least: number, most: number): Schema<number> {
  const form = { type: ["integer", "string"], minimum: least, maximum: most, pattern: WHOLE_NUMBER.source };
  return scalar(`must be a whole number from ${least} to ${most}`, form, (raw) => {
    const value = numberOf(raw, WHOLE_NUMBER);
    return Number.isInteger(value) && value !== undefined && value >= least && value <= most ? value : undefined;
  });
}

function numberOf(raw: unknown, quoted: RegExp): number | undefined {
  if (typeof raw === "number") return raw;
  return typeof raw === "string" && quoted.test(raw) ? Number(raw) : undefined;
}

/** `form` is how JSON Schema describes what may be written. */
function scalar<T>(expected: string, form: object, read: (raw: unknown) => T | undefined): Schema<T> {
  const schema = z.transform((raw: unknown, context) => {
    const value = read(raw);
    if (value !== undefined) return value;
    context.issues.push({
      code: "custom",
      input: raw,
      message: raw === undefined ? "is required" : `${expected}, not ${quote(raw)}${advice(expected, raw)}`,
    });
    return z.NEVER;
  });
  return schema.meta({ ...form });
}

/** YAML takes `1.0`, `on` and `y` for a number or a truth value, and whoever wrote it hardly sees why it should not be text. */
function advice(expected: string, raw: unknown): string {
  const isPlain = typeof raw === "number" || typeof raw === "boolean";
  return isPlain && expected === MUST_BE_TEXT ? ": put it in quotes" : "";
}

/** The value as a reader of the message recognises it; containers by their kind only. */
function quote(raw: unknown): string {
  if (Array.isArray(raw)) return "a list";
  if (typeof raw === "object" && raw !== null) return "an object";
  const text = JSON.stringify(raw) ?? String(raw);
  return text.length > 80 ? `${text.slice(0, 77)}..."` : text;
}
