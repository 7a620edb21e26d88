import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/**
 * What to do with the fields of a message, by number. Other fields, and fields of another wire type, are skipped. Where
 * messages are many the visitor is made once, and reads into what it is given.
 */
export interface FieldVisitor<Into = undefined> {
  /** Strings, bytes and messages, as a view of the input: copy what is kept. */
  readonly bytes?: Readonly<Record<number, (value: Uint8Array, into: Into) => void>>;
  readonly varint?: Readonly<Record<number, (value: number, into: Into) => void>>;
  readonly double?: Readonly<Record<number, (value: number, into: Into) => void>>;
  /** Limits the fields of a message from a stranger, since each takes time, even one that is skipped. */
  readonly limit?: { readonly fields: number; readonly exceeded: () => Error };
}

/** Reads a protobuf message without a schema. Throws when the bytes are no message. */
export function readMessage(message: Uint8Array, visitor: FieldVisitor): void {
  readMessageInto(undefined, message, visitor);
}

/** The same with a visitor that is told what to read into. */
export function readMessageInto<Into>(into: Into, message: Uint8Array, visitor: FieldVisitor<Into>): void {
  const reader = new BinaryReader(message);
  let left = visitor.limit?.fields ?? Number.POSITIVE_INFINITY;
  while (reader.pos < reader.len) {
    if (left-- === 0 && visitor.limit !== undefined) throw visitor.limit.exceeded();
    const [number, type] = reader.tag();
    const onBytes = type === WireType.LengthDelimited ? visitor.bytes?.[number] : undefined;
    const onVarint = type === WireType.Varint ? visitor.varint?.[number] : undefined;
    const onDouble = type === WireType.Bit64 ? visitor.double?.[number] : undefined;
    if (onBytes !== undefined) onBytes(reader.bytes(), into);
    else if (onDouble !== undefined) onDouble(reader.double(), into);
    else if (onVarint !== undefined) onVarint(reader.int32(), into);
    else reader.skip(type, number);
  }
}

/** The text of a string field. */
export function readString(value: Uint8Array): string {
  // Several times faster than a TextDecoder for texts as short as names.
  return (Buffer.isBuffer(value) ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength)).toString();
}

/** The last value of a field of bytes; undefined when there is none. Throws when the bytes are no message. */
export function readField(message: Uint8Array, field: number): Uint8Array | undefined {
  let found: Uint8Array | undefined;
  readMessage(message, {
    bytes: {
      [field]: (value) => {
        found = value;
      },
    },
  });
  return found;
}

/** The text of a string field; empty when there is none. Throws when the bytes are no message. */
export function readText(message: Uint8Array, field: number): string {
  return readString(readField(message, field) ?? EMPTY);
}

/** What follows the first field if that is this one, of at most 15; else the message. Throws when the field is cut off. */
export function withoutFirst(message: Uint8Array, field: number): Uint8Array {
  if (message[0] !== ((field << 3) | WireType.LengthDelimited)) return message;
  const reader = new BinaryReader(message);
  const [number, type] = reader.tag();
  reader.skip(type, number);
  return message.subarray(reader.pos);
}

/** The key and value of an entry of a `map<string, Message>` field. */
export function readMapEntry(
  entry: Uint8Array,
  readKey: (key: Uint8Array) => string = readString,
): { readonly key: string; readonly value: Uint8Array } {
  let key = "";
  let value: Uint8Array = EMPTY;
  readMessage(entry, {
    limit: ENTRY_LIMIT,
    bytes: {
      1: (bytes) => {
        key = readKey(bytes);
      },
      2: (bytes) => {
        value = bytes;
      },
    },
  });
  return { key, value };
}

const EMPTY = new Uint8Array();
/** An entry has two fields; a later version of a protocol may add some. */
const ENTRY_LIMIT = { fields: 100, exceeded: () => new Error("an entry of a map has more than 100 fields") } as const;
