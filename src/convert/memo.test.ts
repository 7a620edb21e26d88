import assert from "node:assert/strict";
import { test } from "node:test";
import { madeFrom, memoized } from "./memo.ts";

test("memoized() calls again only when an input differs", () => {
  let calls = 0;
  const owner = {};
  const add = memoized((_: object, items: readonly number[], more: number) => {
    calls++;
    return items.reduce((a, b) => a + b, more);
  });
  assert.equal(add(owner, [1, 2], 3), 6);
  assert.equal(add(owner, [1, 2], 3), 6);
  assert.equal(calls, 1);
  assert.equal(add(owner, [1, 2, 3], 3), 9);
  assert.equal(add(owner, [1, 2, 3], 4), 10);
  assert.equal(add({}, [1, 2, 3], 4), 10);
  assert.equal(calls, 4);
});

test("madeFrom() gives the previous result for the same items", () => {
  const double = madeFrom((_: readonly number[], items: readonly number[]) => items.map((item) => item * 2));
  const first = double([], [1, 2]);
  assert.deepEqual(first, [2, 4]);
  assert.equal(double(first, [1, 2]), first);
  assert.deepEqual(double(first, [1, 3]), [2, 6]);
});

test("madeFrom() tells what the previous result was made from", () => {
  const told: unknown[] = [];
  const copy = madeFrom((_: readonly number[], items: readonly number[], before: readonly number[] | undefined) => {
    told.push(before);
    return [...items];
  });
  copy(copy([], [1]), [2]);
  assert.deepEqual(told, [undefined, [1]]);
});
