/**
 * The one place where messages become bytes. The encoding is canonical: map entries and the keys of structs are written in
 * sorted order, so that equal content has equal bytes on every replica and after every restart.
 */
import {
  create,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { type Any, AnySchema, type Duration, DurationSchema } from "@bufbuild/protobuf/wkt";

/** The fields of a message, as builders give them. */
export type Init<Desc extends DescMessage> = Exclude<MessageInitShape<Desc>, MessageShape<Desc>>;

/** Canonical bytes. Maps inside `message` are put in order on the way. */
export function encode<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): Uint8Array {
  sortMaps(schema, message as Values);
  return toBinary(schema, message);
}

/** Canonical bytes of a message given by its fields. */
export function bytesOf<Desc extends DescMessage>(schema: Desc, init: MessageInitShape<Desc>): Uint8Array {
  return encode(schema, create(schema, init));
}

/** A message packed with its type. */
export function pack<Desc extends DescMessage>(schema: Desc, init: MessageInitShape<Desc>): Any {
  return create(AnySchema, { typeUrl: typeUrlOf(schema.typeName), value: bytesOf(schema, init) });
}

/** `type.googleapis.com/NAME`, the form Envoy expects. */
export function typeUrlOf(typeName: string): string {
  return `type.googleapis.com/${typeName}`;
}

/** A duration given in milliseconds, which may have fractions. */
export function duration(milliseconds: number): Duration {
  const seconds = Math.trunc(milliseconds / 1000);
  return create(DurationSchema, { seconds: BigInt(seconds), nanos: Math.round((milliseconds - seconds * 1000) * 1e6) });
}

type Values = Record<string, unknown>;
interface OneofValue {
  readonly case: string | undefined;
  readonly value?: unknown;
}

/** Fields of a message in which a map may be found, at any depth. */
const fieldsWithMaps = new WeakMap<DescMessage, readonly DescField[]>();

function sortMaps(desc: DescMessage, message: Values): void {
  for (const field of mapFieldsOf(desc)) {
    const value = fieldValue(field, message);
    if (value === undefined) continue;
    const sorted = sortedValue(field, value);
    if (sorted !== value) setValue(field, message, sorted);
  }
}

function sortedValue(field: DescField, value: unknown): unknown {
  switch (field.fieldKind) {
    case "map": {
      const entries = value as Values;
      if (field.mapKind === "message") for (const entry of Object.values(entries)) sortInside(field.message, entry);
      const isStruct = field.mapKind === "message" && isStructLike(field.message);
      return isStruct ? sortedJson(entries as JsonObject) : sortedKeys(entries);
    }
    case "list":
      if (field.listKind === "message") for (const item of value as unknown[]) sortInside(field.message, item);
      return value;
    case "message":
      if (isStructLike(field.message)) return sortedJson(value as JsonValue);
      sortMaps(field.message, value as Values);
      return value;
    default:
      return value;
  }
}

/** Structs inside lists and maps are JSON already; everything else is a message. */
function sortInside(desc: DescMessage, value: unknown): void {
  if (!isStructLike(desc)) sortMaps(desc, value as Values);
}

function isStructLike(desc: DescMessage): boolean {
  return desc.typeName === "google.protobuf.Struct";
}

function fieldValue(field: DescField, message: Values): unknown {
  if (field.oneof === undefined) return message[field.localName];
  const chosen = message[field.oneof.localName] as OneofValue;
  return chosen.case === field.localName ? chosen.value : undefined;
}

function setValue(field: DescField, message: Values, value: unknown): void {
  if (field.oneof === undefined) message[field.localName] = value;
  else message[field.oneof.localName] = { case: field.localName, value };
}

function mapFieldsOf(desc: DescMessage): readonly DescField[] {
  let fields = fieldsWithMaps.get(desc);
  if (fields === undefined) {
    fields = desc.fields.filter((field) => mayHoldMap(field, new Set()));
    fieldsWithMaps.set(desc, fields);
  }
  return fields;
}

function mayHoldMap(field: DescField, seen: Set<DescMessage>): boolean {
  if (field.fieldKind === "map") return true;
  if (field.message === undefined) return false;
  if (isStructLike(field.message)) return true;
  if (seen.has(field.message)) return false;
  seen.add(field.message);
  return field.message.fields.some((inner) => mayHoldMap(inner, seen));
}

function sortedKeys<T>(object: Record<string, T>): Record<string, T> {
  const keys = Object.keys(object);
  if (isSorted(keys)) return object;
  return Object.fromEntries(keys.sort().map((key) => [key, object[key] as T]));
}

/** The same value when nothing is out of order, which is the usual case. */
function sortedJson(value: JsonValue): JsonValue {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) {
    const items = value.map(sortedJson);
    return items.some((item, i) => item !== value[i]) ? items : value;
  }
  let inner: JsonObject = value;
  for (const key of Object.keys(value)) {
    const before = value[key] as JsonValue;
    const after = sortedJson(before);
    if (after !== before) inner = { ...inner, [key]: after };
  }
  return sortedKeys(inner);
}

function isSorted(keys: readonly string[]): boolean {
  for (let i = 1; i < keys.length; i++) if ((keys[i - 1] ?? "") > (keys[i] ?? "")) return false;
  return true;
}
