import assert from "node:assert/strict";
import { test } from "node:test";
import { assertLinear, doublings, type Measured, problemOf } from "./growth.ts";

const MB = 2 ** 20;

function measured(cost: (size: number) => Partial<Measured>): readonly Measured[] {
  return doublings(1_000, 16_000).map((size) => ({ size, cpuMs: 1, longestMs: 1, peakBytes: 50 * MB, ...cost(size) }));
}

test("linear growth passes, and quadratic growth fails", () => {
  assert.equal(problemOf(measured((size) => ({ cpuMs: size / 20 }))), undefined);
  assert.match(problemOf(measured((size) => ({ cpuMs: size ** 2 / 30_000 }))) ?? "", /power 2\.00/);
  assert.equal(problemOf(measured((size) => ({ cpuMs: size * Math.log2(size) * 0.01 }))), undefined);
});

test("quadratic growth fails when only the two largest sizes can be measured", () => {
  assert.match(problemOf(measured((size) => ({ cpuMs: size ** 2 / 2_500_000 }))) ?? "", /faster than the size/);
});

test("a long turn and growing memory fail", () => {
  assert.match(problemOf(measured((size) => ({ longestMs: size / 50 }))) ?? "", /one turn .* takes 320 ms/);
  assert.match(problemOf(measured((size) => ({ peakBytes: size ** 2 * 4 }))) ?? "", /memory grows/);
  assert.equal(problemOf(measured((size) => ({ peakBytes: 50 * MB + size * 2_000 }))), undefined);
});

test("a case that is too expensive is not measured at larger sizes", async () => {
  const sizes: number[] = [];
  const costOf = async (size: number) => {
    sizes.push(size);
    return { cpuMs: size ** 2, longestMs: 1, peakBytes: 0 };
  };
  await assert.rejects(assertLinear({ sizes: doublings(10, 100_000), costOf }), /power 2\.00/);
  assert.equal(Math.max(...sizes), 80);
});
