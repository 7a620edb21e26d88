import { WireType } from "@bufbuild/protobuf/wire";
import { readString, readText } from "./read.ts";

/** To send something apart costs about as much as to copy so much. */
const LARGE_BYTES = 64 * 1024;

/**
 * The text of a string field of a message that is in pieces, which are not joined for that; empty when there is none.
 * Throws when the bytes are no message.
 */
export function readPiecesText(pieces: readonly Uint8Array[], field: number): string {
  const [only, ...others] = pieces;
  if (only !== undefined && others.length === 0) return readText(only, field);
  const cursor = new Cursor(pieces);
  let found = "";
  while (!cursor.atEnd) {
    const tag = cursor.varint();
    const type = tag & 7;
    if (type === WireType.LengthDelimited) {
      const length = cursor.varint();
      if (tag >>> 3 === field) found = readString(cursor.take(length));
      else cursor.skip(length);
    } else if (type === WireType.Varint) cursor.varint();
    else if (type === WireType.Bit64) cursor.skip(8);
    else if (type === WireType.Bit32) cursor.skip(4);
    else throw new Error(`illegal wire type ${type}`);
  }
  return found;
}

/** The most bytes that a number has. */
const MAX_VARINT_BYTES = 10;
const EMPTY = new Uint8Array();

/** A place in pieces. */
class Cursor {
  readonly #pieces: readonly Uint8Array[];
  #index = 0;
  #at = 0;

  constructor(pieces: readonly Uint8Array[]) {
    this.#pieces = pieces;
    this.#settle();
  }

  get atEnd(): boolean {
    return this.#index === this.#pieces.length;
  }

  /** What is beyond 32 bits is dropped, which no length has. */
  varint(): number {
    let value = 0;
    for (let i = 0; i < MAX_VARINT_BYTES; i++) {
      const byte = this.#byte();
      if (i < 5) value |= (byte & 0x7f) << (7 * i);
      if (byte < 0x80) return value >>> 0;
    }
    throw new Error("invalid varint");
  }

  skip(length: number): void {
    for (let missing = length; missing > 0; ) missing -= this.#piece(missing).length;
  }

  take(length: number): Uint8Array {
    const first = this.#piece(length);
    if (first.length === length) return first;
    const parts = [first];
    for (let missing = length - first.length; missing > 0; ) {
      const part = this.#piece(missing);
      parts.push(part);
      missing -= part.length;
    }
    return Buffer.concat(parts);
  }

  #byte(): number {
    const [byte] = this.#piece(1);
    if (byte === undefined) throw new RangeError("premature EOF");
    return byte;
  }

  /** What is left of the current piece, or its first bytes. */
  #piece(most: number): Uint8Array {
    if (most === 0) return EMPTY;
    const piece = this.#pieces[this.#index]?.subarray(this.#at, this.#at + most);
    if (piece === undefined) throw new RangeError("premature EOF");
    this.#at += piece.length;
    this.#settle();
    return piece;
  }

  #settle(): void {
    while (this.#at === this.#pieces[this.#index]?.length) {
      this.#index++;
      this.#at = 0;
    }
  }
}

/** Bytes one after the other, in few pieces: what is large is not copied, and what stands between is joined. */
export function inPieces(fields: readonly Uint8Array[]): readonly Buffer[] {
  const pieces: Buffer[] = [];
  let small: Uint8Array[] = [];
  const flush = () => {
    if (small.length > 0) pieces.push(Buffer.concat(small));
    small = [];
  };
  for (const field of fields) {
    if (field.length < LARGE_BYTES) small.push(field);
    else {
      flush();
      pieces.push(Buffer.from(field.buffer, field.byteOffset, field.byteLength));
    }
  }
  flush();
  return pieces;
}
