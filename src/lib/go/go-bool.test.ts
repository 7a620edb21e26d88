import assert from "node:assert/strict";
import { test } from "node:test";
import { parseGoBool } from "./go-bool.ts";

test("parseGoBool() reads what Go reads, and nothing else", () => {
  assert.deepEqual(["1", "t", "TRUE", "0", "f", "False", "", "yes", "tRue"].map(parseGoBool), [
    true,
    true,
    true,
    false,
    false,
    false,
    undefined,
    undefined,
    undefined,
  ]);
});
