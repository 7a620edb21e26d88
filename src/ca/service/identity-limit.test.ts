import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { IdentityLimit } from "./identity-limit.ts";

describe("IdentityLimit", () => {
  function limit(perSecond: number) {
    const clock = { now: 1_000_000 };
    const subject = new IdentityLimit({ perSecond, now: () => clock.now });
    const taken = (identity: string, times: number) =>
      Array.from({ length: times }, () => subject.take(identity)).filter(Boolean).length;
    return { clock, subject, taken };
  }

  test("lets five seconds' worth through at once, then so many a second", () => {
    const { clock, taken } = limit(2);
    assert.equal(taken("a", 100), 10);
    clock.now += 1_000;
    assert.equal(taken("a", 100), 2);
    clock.now += 3_600_000;
    assert.equal(taken("a", 100), 10);
  });

  test("counts each identity for itself", () => {
    const { taken } = limit(1);
    assert.deepEqual([taken("a", 9), taken("b", 9)], [5, 5]);
  });

  test("lets a slow rate through at least once", () => {
    const { clock, taken } = limit(0.1);
    assert.equal(taken("a", 9), 1);
    clock.now += 10_000;
    assert.equal(taken("a", 9), 1);
  });

  test("is off at 0", () => {
    const { taken, subject } = limit(0);
    assert.equal(taken("a", 5_000), 5_000);
    assert.equal(subject.size, 0);
  });

  test("survives a clock that is set back", () => {
    const { clock, taken } = limit(1);
    assert.equal(taken("a", 3), 3);
    clock.now -= 3_600_000;
    assert.equal(taken("a", 9), 2);
    clock.now += 1_000;
    assert.equal(taken("a", 9), 1);
  });

  test("forgets identities that do not ask any more", () => {
    const { clock, subject } = limit(1);
    for (let i = 0; i < 10_000; i++) subject.take(`old-${i}`);
    clock.now += 60_000;
    subject.take("new");
    assert.equal(subject.size, 1);
  });
});
