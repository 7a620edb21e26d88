import assert from "node:assert/strict";
import { test } from "node:test";
import { Deadline } from "./deadline.ts";

/** A clock that stands until it is moved. */
function handClock() {
  const timers = new Map<object, { readonly at: number; readonly callback: () => void }>();
  let time = 0;
  const due = () => [...timers].sort(([, a], [, b]) => a.at - b.at).find(([, { at }]) => at <= time);
  return {
    now: () => time,
    after: (ms: number, callback: () => void) => {
      const timer = {};
      timers.set(timer, { at: time + ms, callback });
      return () => void timers.delete(timer);
    },
    count: () => timers.size,
    moveTo: (to: number) => {
      time = to;
      for (let next = due(); next !== undefined; next = due()) {
        timers.delete(next[0]);
        next[1].callback();
      }
    },
  };
}

test("what is over in time is not missed, however often it begins, and one timer is enough", () => {
  const clock = handClock();
  const missed: number[] = [];
  const deadline = new Deadline(clock, 100, () => missed.push(clock.now()));
  for (let at = 0; at < 1_000; at += 10) {
    clock.moveTo(at);
    deadline.begin(at);
    assert.equal(clock.count(), 1);
    clock.moveTo(at + 5);
    deadline.end();
  }
  clock.moveTo(10_000);
  assert.deepEqual([missed, clock.count()], [[], 0]);
});

test("what is not over in time is missed once, at its own time and not that of the one before", () => {
  const clock = handClock();
  const missed: number[] = [];
  const deadline = new Deadline(clock, 100, () => missed.push(clock.now()));
  deadline.begin(0);
  clock.moveTo(60);
  deadline.end();
  deadline.begin(60);
  clock.moveTo(100);
  assert.deepEqual(missed, []);
  clock.moveTo(160);
  clock.moveTo(1_000);
  assert.deepEqual([missed, clock.count()], [[160], 0]);
});

test("after it was stopped nothing is missed and no timer is left", () => {
  const clock = handClock();
  const deadline = new Deadline(clock, 100, () => assert.fail("missed"));
  deadline.begin(0);
  deadline.stop();
  assert.equal(clock.count(), 0);
  clock.moveTo(1_000);
});
