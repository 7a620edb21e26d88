import assert from "node:assert/strict";
import { test } from "node:test";
import { joined, MessageSplitter, type Pieces } from "./messages.ts";
import { GrpcError, STATUS } from "./status.ts";

function framed(message: Buffer, flag = 0): Buffer {
  const head = Buffer.from([flag, 0, 0, 0, 0]);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function split(chunks: readonly Buffer[], maxBytes = -1): Pieces[] {
  const messages: Pieces[] = [];
  const splitter = new MessageSplitter(maxBytes, (message) => void messages.push(message));
  for (const chunk of chunks) splitter.push(chunk);
  return messages;
}

test("MessageSplitter finds messages wherever the bytes are cut", () => {
  const sent = [Buffer.from("one"), Buffer.alloc(0), Buffer.alloc(5_000, 7), Buffer.from("last")];
  const bytes = Buffer.concat(sent.map((message) => framed(message)));
  for (const size of [1, 2, 4, 5, 6, 1_000, bytes.length]) {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    );
    assert.deepEqual(split(chunks).map(joined), sent, `chunks of ${size}`);
  }
});

test("MessageSplitter gives pieces as they came, without a copy", () => {
  const first = framed(Buffer.alloc(6_000, 1)).subarray(0, 3_005);
  const second = Buffer.alloc(3_000, 1);
  const [message = []] = split([first, second]);
  assert.deepEqual(
    message.map(({ buffer, byteOffset, length }) => [
      buffer === first.buffer || buffer === second.buffer,
      byteOffset,
      length,
    ]),
    [
      [true, first.byteOffset + 5, 3_000],
      [true, second.byteOffset, 3_000],
    ],
  );
});

test("MessageSplitter keeps no list of tiny pieces", () => {
  const message = Buffer.alloc(4_096, 3);
  const chunks = [...framed(message)].map((byte) => Buffer.of(byte));
  const [pieces = []] = split(chunks);
  assert.ok(pieces.length <= 5, `${pieces.length} pieces`);
  assert.deepEqual(joined(pieces), message);
});

test("MessageSplitter refuses what is too long, before it has come, and what is compressed", () => {
  const isStatus = (code: number) => (error: unknown) => error instanceof GrpcError && error.code === code;
  const head = framed(Buffer.alloc(11)).subarray(0, 5);
  assert.throws(() => split([head], 10), isStatus(STATUS.RESOURCE_EXHAUSTED));
  assert.equal(split([framed(Buffer.alloc(10))], 10).length, 1);
  assert.throws(() => split([framed(Buffer.from("x"), 1)]), isStatus(STATUS.UNIMPLEMENTED));
});
