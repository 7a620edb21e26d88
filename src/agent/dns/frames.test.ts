import assert from "node:assert/strict";
import { test } from "node:test";
import { readFrames } from "./frames.ts";

test("readFrames() joins what arrives in pieces and separates what arrives together", () => {
  const frames = { pending: Buffer.alloc(0) };
  assert.deepEqual(readFrames(frames, Buffer.from([0])), []);
  assert.deepEqual(readFrames(frames, Buffer.from([2, 7])), []);
  assert.deepEqual(readFrames(frames, Buffer.from([8, 0, 1, 9, 0])), [Buffer.from([7, 8]), Buffer.from([9])]);
  assert.deepEqual([...frames.pending], [0]);
});
