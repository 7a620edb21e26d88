/** `google.protobuf.Struct`: JSON inside protobuf. */
import { readMapEntry, readMessage, readString } from "#lib/wire/read.ts";
import { MessageWriter } from "#lib/wire/write.ts";

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json };

/** Deeper ones are nobody's configuration. */
const MAX_DEPTH = 64;

/** Throws on bytes that are no Struct. */
export function readStruct(bytes: Uint8Array, depth = 0): JsonObject {
  if (depth > MAX_DEPTH) throw new Error(`Struct is nested deeper than ${MAX_DEPTH}`);
  const entries: [string, Json][] = [];
  readMessage(bytes, {
    bytes: {
      1: (entry) => {
        const { key, value } = readMapEntry(entry);
        entries.push([key, readValue(value, depth)]);
      },
    },
  });
  return Object.fromEntries(entries);
}

export function writeStruct(object: JsonObject): Uint8Array {
  const writer = new MessageWriter();
  for (const [key, value] of Object.entries(object)) {
    writer.bytes(1, new MessageWriter().string(1, key).bytes(2, writeValue(value)).finish());
  }
  return writer.finish();
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readValue(bytes: Uint8Array, depth: number): Json {
  let result: Json = null;
  const set = (value: Json) => {
    result = value;
  };
  readMessage(bytes, {
    varint: { 4: (value) => set(value !== 0) },
    double: { 2: set },
    bytes: {
      3: (value) => set(readString(value)),
      5: (value) => set(readStruct(value, depth + 1)),
      6: (list) => {
        const items: Json[] = [];
        readMessage(list, { bytes: { 1: (item) => void items.push(readValue(item, depth + 1)) } });
        set(items);
      },
    },
  });
  return result;
}

/** Members of a oneof are written even when they are empty or zero, else they would be null. */
function writeValue(value: Json): Uint8Array {
  if (value === null) return ZERO(1);
  if (typeof value === "boolean") return value ? new MessageWriter().varint(4, 1).finish() : ZERO(4);
  if (typeof value === "number") return new MessageWriter().double(2, value).finish();
  if (typeof value === "string") return new MessageWriter().bytes(3, Buffer.from(value)).finish();
  if (isObject(value)) return new MessageWriter().bytes(5, writeStruct(value)).finish();
  const list = new MessageWriter();
  for (const item of value) list.bytes(1, writeValue(item));
  return new MessageWriter().bytes(6, list.finish()).finish();
}

/** A varint field that is set to 0. */
const ZERO = (field: number) => Uint8Array.of(field << 3, 0);
