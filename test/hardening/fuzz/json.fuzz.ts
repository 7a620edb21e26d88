/** JSON of requests and files: keys, numbers and depth as JavaScript reads them, without prototypes. */
import assert from "node:assert/strict";
import { parseJson } from "#lib/json/parse-json.ts";
import { type FuzzTarget, readOrReject } from "./target.ts";

export const target: FuzzTarget = {
  maxBytes: 4096,
  dictionary: [
    '{"__proto__":{"a":1}}',
    '{"constructor":1}',
    "[[[[",
    '{"a":',
    "1e400",
    "-0",
    '"\\ud800"',
    "\\u0000",
    "]]",
    "}}",
    ",",
    "null",
    "true",
  ],
  run(input) {
    readOrReject(() => parseJson(input.toString()), SyntaxError);
    assert.equal(Object.hasOwn(Object.prototype, "a"), false, "no prototype is changed");
  },
};
