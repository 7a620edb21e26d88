import assert from "node:assert/strict";
import { test } from "node:test";
import { FairShare } from "./fair-share.ts";

test("FairShare takes from the peer with the most, its oldest share first", () => {
  const lost: string[] = [];
  const memory = new FairShare(100);
  const take = (peer: string, bytes: number, name: string) => memory.take(peer, bytes, () => lost.push(name));
  take("small", 10, "small");
  take("large", 30, "large 1");
  take("large", 30, "large 2");
  take("other", 30, "other");
  assert.deepEqual(lost, []);
  take("newcomer", 10, "newcomer");
  assert.deepEqual(lost, ["large 1"]);
  assert.equal(memory.bytes, 80);
});

test("FairShare counts a share that grows, and forgets one that was given back or lost", () => {
  const lost: string[] = [];
  const memory = new FairShare(100);
  const first = memory.take("a", 10, () => lost.push("first"));
  const second = memory.take("b", 10, () => lost.push("second"));
  second.resize(60);
  first.giveBack();
  first.giveBack();
  first.resize(1_000);
  assert.deepEqual([memory.bytes, lost], [60, []]);
  second.resize(101);
  assert.deepEqual([memory.bytes, lost], [0, ["second"]]);
  second.giveBack();
  assert.equal(memory.bytes, 0);
});

test("FairShare does the same work for each of many shares", () => {
  const memory = new FairShare(10_000);
  let lost = 0;
  for (let i = 0; i < 100_000; i++) memory.take("flood", 1, () => lost++);
  assert.deepEqual([memory.bytes, lost], [10_000, 90_000]);
});
