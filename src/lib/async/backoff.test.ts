import assert from "node:assert/strict";
import { test } from "node:test";
import { Backoff } from "./backoff.ts";

test("Backoff.next() grows up to the limit and reset() starts again", () => {
  const backoff = new Backoff({ initialMs: 100, maxMs: 300, random: () => 0.5 });
  assert.deepEqual([backoff.next(), backoff.next(), backoff.next(), backoff.next()], [100, 150, 225, 300]);
  backoff.reset();
  assert.equal(backoff.next(), 100);
});

test("Backoff.next() spreads around the middle and never exceeds the limit", () => {
  assert.equal(new Backoff({ initialMs: 100, maxMs: 300, random: () => 0 }).next(), 50);
  assert.equal(new Backoff({ initialMs: 300, maxMs: 300, random: () => 0.99 }).next(), 300);
});
