/**
 * Messages of the mesh config as templates see them: Go's structs with a getter for each field. The table of messages reads
 * as that of Kubernetes' types; `|` marks a field that is one of several alternatives and has a getter only, `enum.X` an
 * enumeration whose default is X.
 */

import { typesIn } from "@mizzen/go-template/type-tables";
import { Struct, TextMap, toValue, type Value } from "@mizzen/go-template/value";
import { formatDuration, parseDuration } from "@mizzen/go-text/duration";
import { isRecord } from "#lib/json/is-record.ts";
import { MESH_MESSAGES } from "./mesh-messages.ts";

interface MessageField {
  readonly go: string;
  readonly json: string;
  readonly isAlternative: boolean;
  readonly kind: string;
}

const MESSAGES: ReadonlyMap<string, readonly MessageField[]> = new Map(typesIn(MESH_MESSAGES, readField));
const WRAPPERS: ReadonlySet<string> = new Set(["BoolValue", "Int32Value", "UInt32Value", "StringValue", "DoubleValue"]);

/** A message by its name, from protobuf JSON; undefined is a nil pointer. */
export function messageValue(type: string, json: unknown): Struct {
  const fields = MESSAGES.get(type) ?? [];
  const isNil = !isRecord(json);
  const data = isRecord(json) ? json : {};
  const members: Record<string, Value> = {};
  for (const { go, json: name, isAlternative, kind } of fields) {
    const value = () => fieldValue(kind, data[name]);
    members[`Get${go}`] = value;
    if (!isNil && !isAlternative) members[go] = value();
  }
  return new Struct(`*mesh.${type}`, members, { json: isNil ? null : json, isNil });
}

const MADE = new WeakMap<object, Struct>();

/** As `messageValue`, made once for each configuration: most pods of a mesh share theirs. */
export function sharedMessageValue(type: string, json: object): Struct {
  const made = MADE.get(json) ?? messageValue(type, json);
  MADE.set(json, made);
  return made;
}

/** The fields of a message in the order of its declaration. */
export function fieldNames(type: string): readonly string[] {
  return (MESSAGES.get(type) ?? []).map(({ json }) => json);
}

/** A value of protobuf JSON as Go writes it: fields in the order of their messages, keys of maps sorted. */
export function inFieldOrder(kind: string, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => inFieldOrder(kind.replace(/^\[\]/, ""), item));
  if (!isRecord(value)) return value;
  const fields = MESSAGES.get(kind);
  if (fields === undefined) {
    const keys = kind.startsWith("{}") ? Object.keys(value).sort() : Object.keys(value);
    return Object.fromEntries(keys.map((key) => [key, inFieldOrder(kind.replace(/^\{\}/, ""), value[key])]));
  }
  const set = fields.filter(({ json }) => value[json] !== undefined);
  const known = new Set(fields.map(({ json }) => json));
  const others = Object.entries(value).filter(([name]) => !known.has(name));
  return Object.fromEntries([
    ...set.map(({ json, kind: inner }) => [json, inFieldOrder(inner, value[json])] as const),
    ...others,
  ]);
}

/** How Go prints a duration of the configuration: `45s`, `1m0s`. */
export function durationText(value: Value): string {
  const json = value instanceof Struct ? value.traits.json : value;
  return formatDuration(typeof json === "string" ? (parseDuration(json) ?? 0) : 0);
}

function fieldValue(kind: string, value: unknown): Value {
  if (kind.startsWith("[]")) return Array.isArray(value) ? value.map((item) => fieldValue(kind.slice(2), item)) : [];
  if (kind.startsWith("{}")) return mapValue(kind.slice(2), isRecord(value) ? value : {});
  if (kind.startsWith("enum.")) return enumValue(typeof value === "string" ? value : kind.slice("enum.".length));
  if (WRAPPERS.has(kind)) return wrapperValue(kind, value);
  if (MESSAGES.has(kind)) return messageValue(kind, value);
  return scalarValue(kind, value);
}

function scalarValue(kind: string, value: unknown): Value {
  switch (kind) {
    case "string":
      return typeof value === "string" ? value : "";
    case "bool":
      return value === true;
    case "int":
      return BigInt(typeof value === "number" && Number.isInteger(value) ? value : 0);
    case "float":
      return typeof value === "number" ? value : 0;
    case "Duration":
      return durationValue(value);
    default:
      return toValue(value);
  }
}

function durationValue(value: unknown): Struct {
  const duration = durationText(typeof value === "string" ? value : null);
  const ms = parseDuration(duration) ?? 0;
  const seconds = BigInt(Math.trunc(ms / 1000));
  const nanos = BigInt(Math.round((ms % 1000) * 1e6));
  const isNil = typeof value !== "string";
  const methods = { AsDuration: () => duration, GetSeconds: () => seconds, GetNanos: () => nanos };
  const text = [seconds === 0n ? "" : `seconds:${seconds}`, nanos === 0n ? "" : `nanos:${nanos}`].join("  ").trim();
  const fields = { ...methods, Seconds: seconds, Nanos: nanos };
  return new Struct("*durationpb.Duration", isNil ? methods : fields, { json: value ?? null, text, isNil });
}

function enumValue(name: string): Struct {
  return new Struct("enum", { String: () => name }, { text: name, json: name });
}

function wrapperValue(kind: string, value: unknown): Struct {
  const zero: Value = kind === "BoolValue" ? false : kind === "StringValue" ? "" : 0n;
  const isNil = value === undefined || value === null;
  const inner = typeof value === "number" && kind !== "DoubleValue" ? BigInt(value) : toValue(value);
  const GetValue = () => (isNil ? zero : inner);
  return new Struct(`*wrapperspb.${kind}`, isNil ? { GetValue } : { GetValue, Value: inner }, {
    json: value ?? null,
    text: inner === zero ? "" : `value:${String(inner)}`,
    isNil,
  });
}

function mapValue(kind: string, value: Readonly<Record<string, unknown>>): Value {
  const entries = Object.entries(value);
  if (kind === "string") return new TextMap(Object.fromEntries(entries.map(([key, item]) => [key, String(item)])));
  return Object.fromEntries(entries.map(([key, item]) => [key, fieldValue(kind, item)]));
}

function readField(text: string): MessageField {
  const [name = "", kind = ""] = text.split(" ");
  const [go = "", json = go.charAt(0).toLowerCase() + go.slice(1)] = name.replace("|", "").split("=");
  return { go, json, isAlternative: name.endsWith("|"), kind };
}
