/**
 * Objects as Kubernetes' own tools write them after reading them: fields that the API does not know are dropped, empty ones
 * are left out or written as the API's types say, quantities have their usual spelling.
 */
import { isRecord } from "#lib/json/is-record.ts";
import { canonicalQuantity } from "./quantity.ts";
import { fieldsOf, type Kind, type Scalar } from "./type-table.ts";

/** An object of JSON. */
export type JsonObject = { readonly [key: string]: unknown };

/** A field that holds something else than the API says. */
export class FieldError extends Error {
  /** Where, such as `spec.containers[0].name`. */
  readonly field: string;
  readonly reason: string;

  constructor(field: string, reason: string) {
    super(`${field === "" ? "the object" : field} ${reason}`);
    this.name = "FieldError";
    this.field = field;
    this.reason = reason;
  }
}

/** How to read. */
export interface CanonicalOptions {
  /** Numbers and booleans are taken as text where text is wanted, as YAML readers of Kubernetes do: `value: 1`. */
  readonly lenientText?: boolean;
}

/** An object of a type in its usual form. Throws a `FieldError`. */
export function canonicalObject(type: string, value: unknown, options: CanonicalOptions = {}): JsonObject {
  return readType(type, value ?? {}, options);
}

function readType(type: string, value: unknown, options: CanonicalOptions): JsonObject {
  if (!isRecord(value)) throw new FieldError("", `must be an object, not ${shown(value)}`);
  const result: Record<string, unknown> = {};
  for (const { json, kind, omitEmpty } of fieldsOf(type)) {
    const given = Object.hasOwn(value, json) ? value[json] : undefined;
    if (omitEmpty && (given === undefined || given === null)) continue;
    const item = given === undefined || given === null ? zeroOf(kind) : readAt(json, kind, given, options);
    if (!omitEmpty || !isEmpty(kind, item)) result[json] = item;
  }
  return result;
}

/** Paths are put together only when something is wrong. */
function readAt(name: string, kind: Kind, value: unknown, options: CanonicalOptions): unknown {
  try {
    return read(kind, value, options);
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown;
    const isInside = thrown.field === "" || thrown.field.startsWith("[");
    throw new FieldError(isInside ? `${name}${thrown.field}` : `${name}.${thrown.field}`, thrown.reason);
  }
}

function read(kind: Kind, value: unknown, options: CanonicalOptions): unknown {
  switch (kind.is) {
    case "pointer":
      return value === null ? null : read(kind.of, value, options);
    case "type":
      return readType(kind.type, value ?? {}, options);
    case "list":
      return readList(kind.of, value, options);
    case "map":
      return readMap(kind.of, value, options);
    case "scalar":
      return readScalar(kind.scalar, value, options);
  }
}

function readList(of: Kind, value: unknown, options: CanonicalOptions): unknown {
  if (!Array.isArray(value)) throw new FieldError("", `must be a list, not ${shown(value)}`);
  return value.map((item: unknown, index) => (item === null ? zeroOf(of) : readAt(`[${index}]`, of, item, options)));
}

function readMap(of: Kind, value: unknown, options: CanonicalOptions): unknown {
  if (!isRecord(value)) throw new FieldError("", `must be a map, not ${shown(value)}`);
  const entries = Object.entries(value).map(([key, item]) => {
    return [key, item === null ? zeroOf(of) : readAt(`[${JSON.stringify(key)}]`, of, item, options)] as const;
  });
  return Object.fromEntries(entries);
}

function readScalar(scalar: Scalar, value: unknown, { lenientText = false }: CanonicalOptions): unknown {
  switch (scalar) {
    case "string":
    case "bytes":
    case "time":
      if (typeof value === "string") return value;
      if (lenientText && scalar === "string" && isPlain(value)) return String(value);
      throw new FieldError("", `must be text, not ${shown(value)}`);
    case "bool":
      if (typeof value === "boolean") return value;
      throw new FieldError("", `must be true or false, not ${shown(value)}`);
    case "int":
    case "float":
      if (typeof value === "number" && (scalar === "float" || Number.isInteger(value))) return value;
      throw new FieldError("", `must be a ${scalar === "int" ? "whole " : ""}number, not ${shown(value)}`);
    case "quantity":
      return readQuantity(value);
    case "intstr":
      if (typeof value === "string" || Number.isInteger(value)) return value;
      throw new FieldError("", `must be a whole number or text, not ${shown(value)}`);
    case "any":
      return value;
  }
}

function readQuantity(value: unknown): string {
  const text = typeof value === "number" ? String(value) : value;
  const quantity = typeof text === "string" ? canonicalQuantity(text.trim()) : undefined;
  if (quantity === undefined)
    throw new FieldError("", `must be a quantity such as "100m" or "1Gi", not ${shown(value)}`);
  return quantity;
}

const ZEROS: Readonly<Record<Scalar, unknown>> = {
  string: "",
  bool: false,
  int: 0,
  float: 0,
  bytes: null,
  time: null,
  quantity: "0",
  intstr: 0,
  any: null,
};

/** What an unset field of a kind is written as. */
function zeroOf(kind: Kind): unknown {
  if (kind.is === "scalar") return ZEROS[kind.scalar];
  return kind.is === "type" ? readType(kind.type, {}, {}) : null;
}

/** What `omitempty` leaves out: a pointer that is set is never empty. */
function isEmpty(kind: Kind, value: unknown): boolean {
  if (value === null || value === undefined) return true;
  if (kind.is === "list") return Array.isArray(value) && value.length === 0;
  if (kind.is === "map") return isRecord(value) && Object.keys(value).length === 0;
  if (kind.is === "scalar") return value === "" || value === 0 || value === false;
  return kind.is === "type" && isRecord(value) && Object.keys(value).length === 0;
}

function isPlain(value: unknown): boolean {
  return typeof value === "number" || typeof value === "boolean";
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "an object";
  return JSON.stringify(value) ?? String(value);
}
