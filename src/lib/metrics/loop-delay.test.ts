import assert from "node:assert/strict";
import { test } from "node:test";
import { LoopDelay } from "./loop-delay.ts";

test("LoopDelay tells how late a timer was after work that kept the loop", async () => {
  using delay = new LoopDelay(() => 1);
  await new Promise((resolve) => setTimeout(resolve, 300));
  for (const end = performance.now() + 80; performance.now() < end; );
  await new Promise((resolve) => setTimeout(resolve, 20));
  const { max, min, p50, mean } = delay.take();
  assert.ok(max >= 0.06, `${max}`);
  assert.ok(min <= p50 && p50 <= max && mean <= max);
});

test("LoopDelay begins anew each time its figures are taken", async () => {
  using delay = new LoopDelay(() => 0);
  delay.take();
  assert.deepEqual(delay.take(), { last: 0, min: 0, max: 0, mean: 0, stddev: 0, p50: 0, p90: 0, p99: 0 });
});

test("LoopDelay looks seldom while there is no work, and often while there is", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let [share, looks] = [0, 0];
  using _delay = new LoopDelay(() => {
    looks++;
    return share;
  });
  const looksIn = (ms: number) => {
    looks = 0;
    for (let passed = 0; passed < ms; passed++) t.mock.timers.tick(1);
    return looks;
  };
  assert.ok(looksIn(1_000) < 10);
  share = 1;
  looksIn(1_000);
  assert.ok(looksIn(1_000) > 50);
  share = 0;
  looksIn(1_000);
  assert.ok(looksIn(1_000) < 10);
});
