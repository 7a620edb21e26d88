import assert from "node:assert/strict";
import { test } from "node:test";
import { FrameReader, frame } from "./frames.ts";

test("FrameReader joins what arrives in pieces and separates what arrives together", () => {
  const frames = new FrameReader(100);
  assert.deepEqual(frames.read(Buffer.from([0])), []);
  assert.deepEqual(frames.read(Buffer.from([2, 7])), []);
  assert.deepEqual(frames.read(Buffer.from([8, 0, 1, 9, 0])), [Buffer.from([7, 8]), Buffer.from([9])]);
  assert.ok(frames.isPartial);
  assert.deepEqual(frames.read(Buffer.from([0])), [Buffer.alloc(0)]);
  assert.ok(!frames.isPartial);
});

test("FrameReader rejects a message above the limit as soon as its length is known", () => {
  assert.equal(new FrameReader(4_096).read(Buffer.from([0x10, 0x01])), undefined);
  assert.deepEqual(new FrameReader(4_096).read(Buffer.from([0x10, 0x00])), []);
});

test("FrameReader joins a message of single bytes once", (t) => {
  const concat = t.mock.method(Buffer, "concat");
  const frames = new FrameReader(65_535);
  const message = Buffer.alloc(60_000, 1);
  const framed = frame(message);
  concat.mock.resetCalls();
  const found = [...framed].flatMap((byte) => frames.read(Buffer.of(byte)) ?? []);
  assert.deepEqual(found, [message]);
  assert.equal(concat.mock.callCount(), 2, "for the length, and for the message");
});
