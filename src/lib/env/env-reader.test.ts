import assert from "node:assert/strict";
import { test } from "node:test";
import { EnvReader } from "./env-reader.ts";

test("EnvReader reads booleans as Go does, and numbers as far as they are exact", () => {
  const read = new EnvReader({ YES: "True", NO: "0", ODD: "tRuE", MANY: "9".repeat(20), BLANK: " " });
  assert.equal(read.boolean("YES", false), true);
  assert.equal(read.boolean("NO", true), false);
  assert.deepEqual(read.warnings, []);
  assert.equal(read.boolean("ODD", false), false);
  assert.equal(read.integer("MANY", 7), 7);
  assert.equal(read.ratio("BLANK", 0.5), 0.5);
  assert.deepEqual(read.warnings, [
    'ODD: must be true or false, not "tRuE": its default is used',
    'MANY: must be a whole number, not "99999999999999999999": its default is used',
    'BLANK: must be a number from 0 to 1, not " ": its default is used',
  ]);
  assert.deepEqual(read.problems, []);
});
