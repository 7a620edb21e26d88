/**
 * Objects as Kubernetes' own tools write them after reading them: fields that the API does not know are dropped, empty ones
 * are left out or written as the API's types say, quantities have their usual spelling.
 */
import { isRecord } from "#lib/is-record.ts";
import { canonicalQuantity } from "./quantity.ts";
import { type Field, fieldsOf, type Kind, type Scalar } from "./type-table.ts";

/** An object of JSON. */
export type JsonObject = { readonly [key: string]: unknown };

/** A field that holds something else than the API says. */
export class FieldError extends Error {
  constructor(at: string, message: string) {
    super(`${at === "" ? "the object" : at} ${message}`);
    this.name = "FieldError";
  }
}

/** How to read. */
export interface CanonicalOptions {
  /** Numbers and booleans are taken as text where text is wanted, as YAML readers of Kubernetes do: `value: 1`. */
  readonly lenientText?: boolean;
}

interface Place extends CanonicalOptions {
  readonly at: string;
}

/** An object of a type in its usual form. Throws a `FieldError`. */
export function canonicalObject(type: string, value: unknown, options: CanonicalOptions = {}): JsonObject {
  return readType(type, value ?? {}, { ...options, at: "" });
}

function readType(type: string, value: unknown, place: Place): JsonObject {
  if (!isRecord(value)) throw new FieldError(place.at, `must be an object, not ${shown(value)}`);
  const result: Record<string, unknown> = {};
  for (const field of fieldsOf(type)) {
    const item = readField(field, Object.hasOwn(value, field.json) ? value[field.json] : undefined, place);
    if (item !== undefined) result[field.json] = item;
  }
  return result;
}

function readField({ json, kind, omitEmpty }: Field, value: unknown, place: Place): unknown {
  const at = place.at === "" ? json : `${place.at}.${json}`;
  const item = value === undefined || value === null ? zeroOf(kind) : read(kind, value, { ...place, at });
  return omitEmpty && isEmpty(kind, item) ? undefined : item;
}

function read(kind: Kind, value: unknown, place: Place): unknown {
  switch (kind.is) {
    case "pointer":
      return value === null ? null : read(kind.of, value, place);
    case "type":
      return readType(kind.type, value ?? {}, place);
    case "list":
      return readList(kind.of, value, place);
    case "map":
      return readMap(kind.of, value, place);
    case "scalar":
      return readScalar(kind.scalar, value, place);
  }
}

function readList(of: Kind, value: unknown, place: Place): unknown {
  if (!Array.isArray(value)) throw new FieldError(place.at, `must be a list, not ${shown(value)}`);
  return value.map((item: unknown, index) =>
    item === null ? zeroOf(of) : read(of, item, { ...place, at: `${place.at}[${index}]` }),
  );
}

function readMap(of: Kind, value: unknown, place: Place): unknown {
  if (!isRecord(value)) throw new FieldError(place.at, `must be a map, not ${shown(value)}`);
  const entries = Object.entries(value).map(([key, item]) => {
    const at = `${place.at}[${JSON.stringify(key)}]`;
    return [key, item === null ? zeroOf(of) : read(of, item, { ...place, at })] as const;
  });
  return Object.fromEntries(entries);
}

function readScalar(scalar: Scalar, value: unknown, { at, lenientText = false }: Place): unknown {
  switch (scalar) {
    case "string":
    case "bytes":
    case "time":
      if (typeof value === "string") return value;
      if (lenientText && scalar === "string" && isPlain(value)) return String(value);
      throw new FieldError(at, `must be text, not ${shown(value)}`);
    case "bool":
      if (typeof value === "boolean") return value;
      throw new FieldError(at, `must be true or false, not ${shown(value)}`);
    case "int":
    case "float":
      if (typeof value === "number" && (scalar === "float" || Number.isInteger(value))) return value;
      throw new FieldError(at, `must be a ${scalar === "int" ? "whole " : ""}number, not ${shown(value)}`);
    case "quantity":
      return readQuantity(value, at);
    case "intstr":
      if (typeof value === "string" || Number.isInteger(value)) return value;
      throw new FieldError(at, `must be a whole number or text, not ${shown(value)}`);
    case "any":
      return value;
  }
}

function readQuantity(value: unknown, at: string): string {
  const text = typeof value === "number" ? String(value) : value;
  const quantity = typeof text === "string" ? canonicalQuantity(text.trim()) : undefined;
  if (quantity === undefined)
    throw new FieldError(at, `must be a quantity such as "100m" or "1Gi", not ${shown(value)}`);
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
export function zeroOf(kind: Kind): unknown {
  if (kind.is === "scalar") return ZEROS[kind.scalar];
  return kind.is === "type" ? readType(kind.type, {}, { at: "" }) : null;
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
