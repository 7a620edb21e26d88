import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatDuration, parseDuration } from "./duration.ts";

test("parseDuration() reads what Go reads", () => {
  const cases: Record<string, number> = {
    "0": 0,
    "0s": 0,
    "10s": 10_000,
    "1.5h": 5_400_000,
    "1h30m": 5_400_000,
    "250ms": 250,
    ".5s": 500,
    "1.s": 1000,
    "-2m": -120_000,
    "+3s": 3000,
    "100us": 0.1,
    "100µs": 0.1,
    "1ns": 1e-6,
  };
  for (const [text, millis] of Object.entries(cases)) assert.equal(parseDuration(text), millis, text);
});

test("parseDuration() refuses what is no duration", () => {
  for (const text of ["", "5", "s", "-", "1 s", "1d", "1s ", "1e3s", "..5s", "10000000h"]) {
    assert.equal(parseDuration(text), undefined, text);
  }
});

test("formatDuration() prints as Go does", () => {
  const cases: Record<string, number> = {
    "0s": 0,
    "1ns": 1e-6,
    "1.5µs": 0.0015,
    "250ms": 250,
    "1.5s": 1500,
    "9.806s": 9806,
    "1m0s": 60_000,
    "1h0m0.25s": 3_600_250,
    "-5s": -5000,
  };
  for (const [text, millis] of Object.entries(cases)) assert.equal(formatDuration(millis), text);
});

test("formatDuration() is read back by parseDuration()", () => {
  fc.assert(
    fc.property(fc.integer({ min: -1e9, max: 1e9 }), (millis) => {
      const read = parseDuration(formatDuration(millis));
      assert.ok(read !== undefined && Math.abs(read - millis) < 1e-3, `${millis} became ${read}`);
    }),
  );
});
