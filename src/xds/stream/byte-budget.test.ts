import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteBudget } from "./byte-budget.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("a budget calls back at once while there is room, and otherwise when something was read", async () => {
  const budget = new ByteBudget(100);
  const sent: string[] = [];
  const send = (name: string) => () => {
    sent.push(name);
    budget.take(60);
  };
  for (const name of ["a", "b", "c", "d"]) budget.whenRoom(send(name));
  await turn();
  assert.deepEqual(sent, ["a", "b"]);
  budget.giveBack(60);
  await turn();
  assert.deepEqual([sent, budget.used], [["a", "b", "c"], 120]);
});

test("who waits may leave, and too many cannot wait", () => {
  const budget = new ByteBudget(0);
  const never = () => () => assert.fail("called");
  budget.take(1);
  const leave = budget.whenRoom(never());
  leave?.();
  for (let i = 0; i < 1_000; i++) assert.ok(budget.whenRoom(never()));
  assert.equal(budget.whenRoom(never()), undefined);
});

test("bytes of a share count for the whole, which has room for others when the share has none", async () => {
  const whole = new ByteBudget(100);
  const share = new ByteBudget(25, whole);
  share.take(30);
  assert.deepEqual([share.isSpent, whole.isSpent, whole.used], [true, false, 30]);
  whole.take(70);
  let called = false;
  share.whenRoom(() => {
    called = true;
  });
  share.giveBack(30);
  await turn();
  assert.deepEqual([called, share.isSpent, whole.used], [true, false, 70]);
  whole.take(30);
  assert.ok(share.isSpent);
});
