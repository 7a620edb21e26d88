import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJson } from "./parse-json.ts";

test("parseJson() refuses what is nested too deeply to be written out again", () => {
  const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
  assert.equal(JSON.stringify(parseJson(nested(1_000))), nested(1_000));
  for (const depth of [1_001, 100_000]) {
    assert.throws(() => parseJson(nested(depth)), { name: "SyntaxError", message: "it is nested deeper than 1000" });
    assert.throws(() => parseJson(`{"a":[1,{"b":${nested(depth)}}]}`), SyntaxError);
  }
});

test("parseJson() reads JSON, and says of other text what is wrong with it", () => {
  assert.deepEqual(parseJson('{"a":[1,null,{"b":"c"}]}'), { a: [1, null, { b: "c" }] });
  assert.equal(parseJson("null"), null);
  assert.throws(() => parseJson("{"), SyntaxError);
});

test("parseJson() ignores brackets in strings, however they are escaped", () => {
  const text = JSON.stringify({ plain: "[".repeat(50), quoted: '\\"['.repeat(50), "{key": ["\\"] });
  assert.deepEqual(parseJson(text, 2), JSON.parse(text));
  assert.throws(() => parseJson(text, 1), { message: "it is nested deeper than 1" });
});

test("parseJson() looks at each character once: a string without an end is not read again from each of its quotes", () => {
  const cost = (size: number) => {
    const text = '\\"'.repeat(size);
    const start = process.cpuUsage();
    assert.throws(() => parseJson(text), SyntaxError);
    const { user, system } = process.cpuUsage(start);
    return user + system;
  };
  cost(1_000);
  assert.ok(cost(2_000_000) < 1_000_000, "4 MB took more than a second");
});
