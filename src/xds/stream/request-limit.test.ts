import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestLimit } from "./request-limit.ts";

test("turn() gives each its place, and refuses who would wait for more than a second", () => {
  const limit = new RequestLimit(2);
  assert.deepEqual([limit.turn(0), limit.turn(0), limit.turn(0), limit.turn(0)], [0, 500, 1000, undefined]);
  assert.equal(limit.turn(1000), 500);
});

test("turn() saves nothing up while it is quiet", () => {
  const limit = new RequestLimit(10);
  assert.deepEqual([limit.turn(5_000), limit.turn(5_000)], [0, 100]);
});
