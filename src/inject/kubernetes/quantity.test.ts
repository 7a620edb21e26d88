import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalQuantity } from "./quantity.ts";

const CASES: readonly (readonly [given: string, canonical: string])[] = [
  ["2000m", "2"],
  ["100m", "100m"],
  ["0.5", "500m"],
  [".5", "500m"],
  ["1.", "1"],
  ["1024Mi", "1Gi"],
  ["1000Mi", "1000Mi"],
  ["0.5Gi", "512Mi"],
  ["512Ki", "512Ki"],
  ["1023Ki", "1023Ki"],
  ["0.5Ki", "512"],
  ["1.5", "1500m"],
  ["1000k", "1M"],
  ["12e6", "12e6"],
  ["1e3", "1e3"],
  ["1000e-3", "1"],
  ["0", "0"],
  ["0Mi", "0"],
  ["-1500m", "-1500m"],
  ["+3", "3"],
  ["0.1n", "1n"],
];

for (const [given, canonical] of CASES) {
  test(`canonicalQuantity() writes ${given} as ${canonical}`, () => {
    assert.equal(canonicalQuantity(given), canonical);
    assert.equal(canonicalQuantity(canonical), canonical, "and leaves it so");
  });
}

test("canonicalQuantity() refuses what is no quantity", () => {
  for (const wrong of ["", ".", "m", "1 Gi", "1GiB", "1e", "1ee3", "0x10", "١", "1e999", "9".repeat(100), "1\n"]) {
    assert.equal(canonicalQuantity(wrong), undefined, JSON.stringify(wrong));
  }
});
