import assert from "node:assert/strict";
import { test } from "node:test";
import { Slices } from "./slices.ts";
import { atOnce, finished, type Steps } from "./steps.ts";

function* countTo(end: number, note: (at: number) => void): Steps<string> {
  for (let at = 1; at <= end; at++) {
    note(at);
    yield;
  }
  return `counted to ${end}`;
}

test("finished() takes all steps at once", () => {
  const noted: number[] = [];
  assert.equal(finished(countTo(3, (at) => noted.push(at))), "counted to 3");
  assert.deepEqual(noted, [1, 2, 3]);
  assert.equal(finished(atOnce(7)), 7);
});

test("Slices.run() gives others a turn when a slice is over, and only then", async () => {
  let now = 0;
  const slices = new Slices(() => now, 10);
  const events: string[] = [];
  const others = () => events.push("others");
  setImmediate(others);
  const result = slices.run(
    countTo(4, (at) => {
      events.push(`step ${at}`);
      now += 5;
    }),
  );
  assert.equal(await result, "counted to 4");
  assert.deepEqual(events.slice(0, 3), ["step 1", "step 2", "others"]);
});

test("Slices.run() rejects with what a step throws", async () => {
  const steps = countTo(2, (at) => {
    if (at === 2) throw new Error("no further");
  });
  await assert.rejects(new Slices(() => 0, 10).run(steps), /no further/);
});
