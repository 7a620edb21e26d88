import assert from "node:assert/strict";
import { test } from "node:test";
import { readPiecesText } from "./pieces.ts";
import { MessageWriter } from "./write.ts";

const MESSAGE = new MessageWriter()
  .string(1, "v".repeat(200))
  .varint(3, 2 ** 40)
  .double(7, 1.5)
  .string(4, "first")
  .bytes(2, new Uint8Array(300))
  .string(4, "type.example/Ünicode")
  .bytes(5, new Uint8Array())
  .finish();

function cut(bytes: Uint8Array, size: number): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size));
}

test("readPiecesText() reads the last value of a field wherever the message is cut", () => {
  for (const size of [1, 2, 3, 7, 64, 500, MESSAGE.length]) {
    assert.equal(readPiecesText(cut(MESSAGE, size), 4), "type.example/Ünicode", `pieces of ${size}`);
    assert.equal(readPiecesText(cut(MESSAGE, size), 9), "");
    assert.equal(readPiecesText(cut(MESSAGE, size), 5), "");
  }
  assert.equal(readPiecesText([], 4), "");
});

test("readPiecesText() passes over pieces that are empty", () => {
  const pieces = cut(MESSAGE, 50).flatMap((piece) => [new Uint8Array(), piece, new Uint8Array()]);
  assert.equal(readPiecesText(pieces, 4), "type.example/Ünicode");
});

test("readPiecesText() throws when the pieces are no message", () => {
  const long = new MessageWriter().string(1, "long enough").finish();
  assert.throws(() => readPiecesText(cut(long.subarray(0, 6), 2), 1), /premature EOF/);
  assert.throws(() => readPiecesText(cut(long.subarray(0, 6), 2), 2), /premature EOF/);
  assert.throws(() => readPiecesText(cut(Uint8Array.of(0x08, ...Array(11).fill(0xff)), 3), 1), /invalid varint/);
  assert.throws(() => readPiecesText(cut(Uint8Array.of(0x0b, 1, 1), 2), 1), /wire type 3/);
});
