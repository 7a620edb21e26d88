import assert from "node:assert/strict";
import test from "node:test";
import { aimsTable, figure } from "./figures.ts";

test("aimsTable() has the aim beside each figure, and tells which is missed", () => {
  const table = aimsTable([
    figure({ what: "fast", value: 1.26, unit: "s", most: 2 }),
    figure({ what: "slow", value: 12, unit: "s", most: 2 }),
    figure({ what: "free", value: 3, unit: "MB" }),
    figure({ what: "not measured", value: Number.NaN, unit: "MB", most: 12 }),
  ]);
  assert.deepEqual(table.split("\n"), [
    "              measured  aim              reached",
    "fast             1.3 s  at most 2.0 s    yes",
    "slow            12.0 s  at most 2.0 s    NO",
    "free            3.0 MB",
    "not measured         -  at most 12.0 MB",
  ]);
});

test("aimsTable() has a column for what somebody else needed, where that was measured", () => {
  const table = aimsTable([
    figure({ what: "rate", value: 50, unit: "/s", digits: 0, least: 60, theirs: 40 }),
    figure({ what: "memory", value: 3, unit: "MB", theirs: Number.NaN }),
    figure({ what: "alone", value: 3, unit: "MB" }),
  ]);
  assert.deepEqual(table.split("\n"), [
    "        measured  Istio's  aim             reached",
    "rate       50 /s    40 /s  at least 60 /s  NO",
    "memory    3.0 MB        -",
    "alone     3.0 MB",
  ]);
});
