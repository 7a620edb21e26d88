import assert from "node:assert/strict";
import { test } from "node:test";
import { fittingWeights } from "./weights.ts";

test("usual weights stay as they are", () => {
  const weights = [1, 99];
  assert.equal(fittingWeights(weights), weights);
});

test("weights whose sum does not fit into 32 bits keep their proportion", () => {
  const [small = 0, large = 0, tiny = 0] = fittingWeights([2 ** 31, 2 ** 32 - 1, 1]);
  assert.ok(small + large + tiny <= 2 ** 32 - 1);
  assert.ok(Math.abs(large / small - 2) < 0.001);
  assert.equal(tiny, 1);
});
