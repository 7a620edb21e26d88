import assert from "node:assert/strict";
import { test } from "node:test";
import { type Batch, dueAt, withChange } from "./debounce.ts";

const AFTER_SILENCE = { releasedAt: 0, unresolved: false };
const batchOf = (endpointsOnly: boolean, ...times: number[]) => {
  const batch = times.reduce<Batch | undefined>((b, at) => withChange(b, { endpointsOnly, at }), undefined);
  assert.ok(batch);
  return batch;
};

test("endpoints go at once when it was quiet before", () => {
  assert.equal(dueAt(batchOf(true, 1000), AFTER_SILENCE), 1000);
});

test("endpoints right behind another push wait for 5 ms of quiet", () => {
  assert.equal(dueAt(batchOf(true, 1000), { releasedAt: 997, unresolved: false }), 1005);
  assert.equal(dueAt(batchOf(true, 1000, 1004), AFTER_SILENCE), 1009);
});

test("configuration waits for 5 ms of quiet", () => {
  assert.equal(dueAt(batchOf(false, 1000), AFTER_SILENCE), 1005);
  assert.equal(dueAt(batchOf(false, 1000, 1003, 1007), AFTER_SILENCE), 1012);
});

test("endpoints together with configuration wait with it", () => {
  assert.equal(dueAt(withChange(batchOf(false, 1000), { endpointsOnly: true, at: 1003 }), AFTER_SILENCE), 1008);
});

test("a reference that does not resolve yet holds the change for up to 100 ms", () => {
  assert.equal(dueAt(batchOf(false, 1000), { releasedAt: 0, unresolved: true }), 1100);
});

test("in a flood 100 ms of quiet are enough, and nothing waits longer than 10 s", () => {
  const flood = batchOf(false, ...Array.from({ length: 40 }, (_, i) => 1000 + 5 * i));
  assert.equal(dueAt(flood, AFTER_SILENCE), 1000 + 195 + 100);
  const endless = batchOf(false, ...Array.from({ length: 3000 }, (_, i) => 1000 + 5 * i));
  assert.equal(dueAt(endless, AFTER_SILENCE), 11_000);
});

test("endpoints wait at most 1 s in a flood", () => {
  assert.equal(dueAt(batchOf(true, ...Array.from({ length: 3000 }, (_, i) => 1000 + 5 * i)), AFTER_SILENCE), 2000);
});

test("a silence that was asked for counts for configuration, endpoints and missing references alike", () => {
  const settings = { afterMs: 300 };
  assert.equal(dueAt(batchOf(false, 1000, 1200), AFTER_SILENCE, settings), 1500);
  assert.equal(dueAt(batchOf(true, 1000), AFTER_SILENCE, settings), 1300);
  assert.equal(dueAt(batchOf(false, 1000), { releasedAt: 0, unresolved: true }, { afterMs: 0 }), 1000);
});

test("a longest wait that was asked for ends a flood, but never before one silence", () => {
  const flood = batchOf(false, ...Array.from({ length: 400 }, (_, i) => 1000 + 5 * i));
  assert.equal(dueAt(flood, AFTER_SILENCE, { maxMs: 500 }), 1500);
  assert.equal(dueAt(flood, AFTER_SILENCE, { afterMs: 200, maxMs: 500 }), 1500);
  assert.equal(dueAt(flood, AFTER_SILENCE, { afterMs: 600, maxMs: 500 }), 1600);
  assert.equal(dueAt({ ...flood, endpointsOnly: true }, AFTER_SILENCE, { maxMs: 500 }), 1500);
});

test("endpoints wait never or always where somebody said so", () => {
  assert.equal(dueAt(batchOf(true, 1000), { releasedAt: 998, unresolved: false }, { endpointsWait: false }), 1000);
  assert.equal(dueAt(batchOf(true, 1000), AFTER_SILENCE, { endpointsWait: true }), 1005);
  assert.equal(dueAt(batchOf(false, 1000), AFTER_SILENCE, { endpointsWait: false }), 1005);
});
