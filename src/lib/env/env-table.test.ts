import assert from "node:assert/strict";
import { test } from "node:test";
import { choice, flag, list, optionalDuration, ratio, readEnvironment, wholeNumber, word } from "./env-table.ts";

test("readEnvironment() reads booleans as Go does, and warns of values that it replaces by the default", () => {
  const table = {
    YES: flag(false, ""),
    NO: flag(true, ""),
    ODD: flag(false, ""),
    MANY: wholeNumber(7, ""),
    BLANK: ratio(0.5, ""),
  };
  const given = { YES: "True", NO: "0", ODD: "tRuE", MANY: "9".repeat(20), BLANK: " " };
  const { values, problems, warnings } = readEnvironment(table, given);
  assert.deepEqual(values, { YES: true, NO: false, ODD: false, MANY: 7, BLANK: 0.5 });
  assert.deepEqual(warnings, [
    'ODD: must be true or false, not "tRuE": false is used',
    'MANY: must be a whole number, not "99999999999999999999": 7 is used',
    'BLANK: must be a number from 0 to 1, not " ": 0.5 is used',
  ]);
  assert.deepEqual(problems, []);
});

test("readEnvironment() treats an empty variable like an unset one", () => {
  const table = { NAME: word("istiod", ""), WAIT: optionalDuration(""), ITEMS: list("") };
  const { values, warnings } = readEnvironment(table, { NAME: "", WAIT: "", ITEMS: "" });
  assert.deepEqual(values, { NAME: "istiod", WAIT: undefined, ITEMS: [] });
  assert.deepEqual(warnings, []);
});

test("readEnvironment() reports a choice that does not exist as a problem", () => {
  const { values, problems } = readEnvironment({ MODE: choice(["auto", "true"], "") }, { MODE: "maybe" });
  assert.equal(values.MODE, "auto");
  assert.deepEqual(problems, ['MODE: must be one of auto, true, not "maybe"']);
});
