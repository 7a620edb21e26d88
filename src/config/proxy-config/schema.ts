/**
 * Reads protobuf JSON as the API's own parsers do (both spellings of a field, enums by name or number, Go durations) into
 * its canonical form, in which values that equal the default are left out. Plain functions, since this runs in every pod
 * and a schema library would cost each of them megabytes.
 */
import { type Millis, parseDuration } from "@mizzen/go-text/duration";
import { isRecord } from "#lib/json/is-record.ts";

/** A value in canonical form. */
export type Json = string | number | boolean | readonly Json[] | { readonly [key: string]: Json };

/** Receives what is wrong: the path of the field and what is allowed. */
export type Report = (field: string, message: string, severity?: "error" | "warning") => void;

/** Reads a value; undefined when it is wrong, or equals the default and is therefore not written. */
export type Read = (value: unknown, at: string, report: Report) => Json | undefined;

/** A string. */
export const text: Read = (value, at, report) => {
  if (typeof value === "string") return value === "" ? undefined : value;
  report(at, `must be a string, not ${shown(value)}`);
  return undefined;
};

/** A whole number of 32 bits that is left out when it is 0. */
export const integer: Read = wholeNumber(-(2 ** 31), 2 ** 31 - 1);

/** The same without a sign. */
export const unsigned: Read = wholeNumber(0, 2 ** 32 - 1);

function wholeNumber(least: number, most: number): Read {
  return (value, at, report) => {
    const number = typeof value === "string" && WHOLE.test(value.trim()) ? Number(value) : value;
    const isWhole = typeof number === "number" && Number.isInteger(number);
    if (isWhole && number >= least && number <= most) return number === 0 ? undefined : number;
    report(at, `must be a whole number${isWhole ? ` from ${least} to ${most}` : ""}, not ${shown(value)}`);
    return undefined;
  };
}

const WHOLE = /^-?(0|[1-9]\d*)$/;
const MAX_LONG = 2n ** 63n;

/** A whole number of 64 bits, which protobuf JSON writes as text. */
export const long: Read = (value, at, report) => {
  const written = typeof value === "string" ? value.trim() : Number.isInteger(value) ? BigInt(Number(value)) : "";
  const number = WHOLE.test(String(written)) ? BigInt(written) : MAX_LONG;
  if (number >= -MAX_LONG && number < MAX_LONG) return String(number);
  report(at, `must be a whole number of 64 bits, not ${shown(value)}`);
  return undefined;
};

/** A number that is left out when it is 0. */
export const double: Read = (value, at, report) => {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  if (typeof number === "number" && Number.isFinite(number)) return number === 0 ? undefined : number;
  report(at, `must be a number, not ${shown(value)}`);
  return undefined;
};

/** A boolean that is left out when it is false. */
export const flag: Read = (value, at, report) => {
  if (typeof value === "boolean") return value ? true : undefined;
  report(at, `must be true or false, not ${shown(value)}`);
  return undefined;
};

/** A wrapped value: set and equal to the default is not the same as unset. */
export function wrapped(read: Read, zero: Json): Read {
  return (value, at, report) => {
    let failed = false;
    const result = read(value, at, (...problem) => {
      failed = true;
      report(...problem);
    });
    return failed ? undefined : (result ?? zero);
  };
}

/** A duration, in seconds with a unit as protobuf JSON writes it. */
export const duration: Read = (value, at, report) => {
  const ms = typeof value === "string" ? parseDuration(value) : undefined;
  if (ms !== undefined) return protobufDuration(ms);
  report(at, `must be a duration such as "5s", not ${shown(value)}`);
  return undefined;
};

/** One of some names, of which the first is the default. */
export function enumeration(...names: readonly string[]): Read {
  return (value, at, report) => {
    const index = typeof value === "number" ? value : names.indexOf(String(value));
    const name = names[index];
    if (name !== undefined) return index === 0 ? undefined : name;
    report(at, `must be one of ${names.join(", ")}, not ${shown(value)}`);
    return undefined;
  };
}

/** A list; null in it is `zero`. */
export function list(read: Read, zero: Json = ""): Read {
  return (value, at, report) => {
    if (!Array.isArray(value)) {
      report(at, `must be a list, not ${shown(value)}`);
      return undefined;
    }
    const items = value.map((item, index) => (item === null ? zero : (read(item, `${at}[${index}]`, report) ?? zero)));
    return items.length === 0 ? undefined : items;
  };
}

/** A map by string; null in it is `zero`. */
export function map(read: Read, zero: Json = ""): Read {
  return (value, at, report) => {
    if (!isRecord(value)) {
      report(at, `must be a map, not ${shown(value)}`);
      return undefined;
    }
    const entries = Object.entries(value).map(
      ([key, item]) => [key, item === null ? zero : (read(item, `${at}.${key}`, report) ?? zero)] as const,
    );
    return entries.length === 0 ? undefined : Object.fromEntries(entries);
  };
}

/** Fields of which one counts, in the order of their message. */
interface Alternatives {
  readonly names: readonly string[];
  /** More than one is an error; else the last of them counts, as to the API's parsers, and it is told. */
  readonly strict?: boolean;
}

/** A message. */
export function message(
  fields: Readonly<Record<string, Read>>,
  { names, strict = false }: Alternatives = { names: [] },
): Read {
  return (value, at, report) => {
    if (!isRecord(value)) {
      report(at, `must be an object, not ${shown(value)}`);
      return undefined;
    }
    const result: Record<string, Json> = {};
    for (const [field, read, item] of knownFields(fields, value, (name) => unknownField(join(at, name), report))) {
      const json = read(item, join(at, field), report);
      if (json !== undefined) result[field] = json;
    }
    const given = names.filter((name) => Object.hasOwn(result, name));
    const last = given.at(-1);
    if (given.length < 2) return result;
    const problem = `may have only one of ${given.join(", ")}`;
    if (strict) report(at, problem);
    else report(at, `${problem}: ${last} counts`, "warning");
    return Object.fromEntries(Object.entries(result).filter(([name]) => name === last || !given.includes(name)));
  };
}

/** The fields of `value` that are set, under their canonical names; null is unset. */
export function* knownFields(
  fields: Readonly<Record<string, Read>>,
  value: Readonly<Record<string, unknown>>,
  onUnknown: (name: string) => void,
): Generator<readonly [field: string, read: Read, item: unknown]> {
  for (const [name, item] of Object.entries(value)) {
    const field = name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    const read = Object.hasOwn(fields, field) ? fields[field] : undefined;
    if (read === undefined) onUnknown(name);
    else if (item !== null && item !== undefined) yield [field, read, item];
  }
}

/** Unknown fields may come from a newer version: they are told, not refused. */
export function unknownField(at: string, report: Report): void {
  report(at, "is not known and has no effect", "warning");
}

/** `45s`, `0.250s`: with no, 3, 6 or 9 digits behind the point. */
function protobufDuration(ms: Millis): string {
  const nanos = Math.round((Math.abs(ms) % 1000) * 1e6);
  const seconds = Math.trunc(Math.abs(ms) / 1000);
  const digits = String(nanos)
    .padStart(9, "0")
    .replace(/(000){1,3}$/, "");
  return `${ms < 0 ? "-" : ""}${seconds}${digits === "" ? "" : `.${digits}`}s`;
}

function join(at: string, name: string): string {
  return at === "" ? name : `${at}.${name}`;
}

const MAX_SHOWN = 100;

/** As much of it as helps to find it. */
function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}...` : text;
}
