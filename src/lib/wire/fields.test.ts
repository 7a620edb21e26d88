import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldHead, withMessages } from "./fields.ts";
import { MessageWriter } from "./write.ts";

const SIZES = [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152];
const bytesOf = (size: number) => new Uint8Array(size).fill(7);

test("fieldHead() is what a writer puts before bytes, whatever their size and field", () => {
  for (const field of [1, 2, 15, 16, 3000]) {
    for (const size of SIZES) {
      const whole = new MessageWriter().bytes(field, bytesOf(size)).finish();
      assert.deepEqual(fieldHead(field, size), whole.subarray(0, whole.length - size), `${field} ${size}`);
    }
  }
});

test("withMessages() is the message and its fields one after the other", () => {
  const own = new MessageWriter().string(1, "name").finish();
  const messages = SIZES.map(bytesOf);
  const wanted = messages.reduce((writer, message) => writer.bytes(2, message), new MessageWriter().string(1, "name"));
  assert.ok(Buffer.from(withMessages(own, 2, messages)).equals(wanted.finish()));
  assert.deepEqual(withMessages(own, 2, []), own);
});
