import assert from "node:assert/strict";
import { test } from "node:test";
import { unquoteGo } from "./quoted-string.ts";

const READ: readonly (readonly [literal: string, text: string])[] = [
  ['""', ""],
  ['"a\\tb\\"c\\\\"', 'a\tb"c\\'],
  ['"\\xc3\\xa9 \\303\\251 \\u00e9 \\U0001F600"', "é é é 😀"],
  ["'\\''", "'"],
  ["'\"'", '"'],
  ["''", ""],
  ["'é'", "é"],
  ["'\\u00e9'", "é"],
  ['`a\\n"b\r\nc`', 'a\\n"b\nc'],
];
const REFUSED = [
  "",
  '"',
  "a",
  '"a',
  "'a\"",
  '"a"b"',
  '"\\q"',
  '"\\\'"',
  '"\\x4"',
  '"\\400"',
  '"\\U00110000"',
  '"\\ud800"',
  '"a\\"',
  '"a\nb"',
  "`a`b`",
  "'ab'",
  "'\\n\\n'",
];

for (const [literal, text] of READ) {
  test(`unquoteGo() reads ${literal}`, () => assert.equal(unquoteGo(literal), text));
}

for (const literal of REFUSED) {
  test(`unquoteGo() refuses ${JSON.stringify(literal)}`, () => assert.equal(unquoteGo(literal), undefined));
}
