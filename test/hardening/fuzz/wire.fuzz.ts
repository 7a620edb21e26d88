/** The reader of protobuf messages, by which every request on 15010 and 15012 is read. */
import assert from "node:assert/strict";
import { readPiecesText } from "#lib/wire/pieces.ts";
import { readField, readMapEntry, readString, readText, withoutFirst } from "#lib/wire/read.ts";
import { rewriteMessage } from "#lib/wire/rewrite.ts";
import { type FuzzTarget, readOrReject } from "./target.ts";

/** What protobuf-es and Node throw on bytes that are not a message. */
export const NOT_A_MESSAGE =
  /^(illegal (tag|wire type)|premature EOF|cant skip wire type|invalid (varint|end group tag)|maximum recursion depth|Offset is outside)/;

export const target: FuzzTarget = {
  maxBytes: 4096,
  dictionary: [
    "\x0a\x03abc",
    "\x12\x02\x0a\x00",
    "\x08\x01",
    "\x1b\x1c",
    "\x7a\xff\xff\xff\xff\x0f",
    "\x0d\x00\x00\x00\x00",
    "\x09\x00\x00\x00\x00\x00\x00\x00\x00",
  ],
  run(input) {
    const read = <T>(reader: () => T) => readOrReject(reader, NOT_A_MESSAGE);
    const text = read(() => readText(input, 1));
    const copy = read(() => rewriteMessage(input, { 1: (value) => value }));
    if (copy !== undefined)
      assert.equal(
        read(() => readText(copy, 1)),
        text,
        "a copy reads as its original",
      );
    const half = input.length >> 1;
    const inPieces = read(() => readPiecesText([input.subarray(0, half), input.subarray(half)], 1));
    if (text !== undefined && inPieces !== undefined) assert.equal(inPieces, text, "pieces read as a whole");
    read(() => withoutFirst(input, 1));
    read(() => readMapEntry(input));
    const field = read(() => readField(input, 2));
    if (field !== undefined) readString(field);
  },
};
