import assert from "node:assert/strict";
import { test } from "node:test";
import { Rivals } from "./rivals.ts";

test("whose writing is undone again and again waits longer each time, up to a minute", () => {
  let now = 0;
  const rivals = new Rivals(() => now);
  const pauses: number[] = [];
  for (let i = 0; i < 17; i++) {
    pauses.push(rivals.pauseMs("a") / 1000);
    now += rivals.pauseMs("a");
    rivals.wrote("a");
  }
  assert.deepEqual(pauses, [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
  assert.equal(rivals.pauseMs("b"), 0);
});

test("after a quiet time, and for an object that is gone, it begins anew", () => {
  let now = 0;
  const rivals = new Rivals(() => now);
  for (let i = 0; i < 10; i++) rivals.wrote("a");
  assert.ok(rivals.pauseMs("a") > 0);
  now += 121_000;
  assert.equal(rivals.pauseMs("a"), 0);
  for (let i = 0; i < 10; i++) rivals.wrote("a");
  rivals.forget("a");
  assert.equal(rivals.pauseMs("a"), 0);
});
