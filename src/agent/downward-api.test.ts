import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDownwardApi } from "./downward-api.ts";

test("parseDownwardApi() reads what the kubelet writes", () => {
  const text = 'app="httpbin"\nversion="v1"\nconfig="foo: bar\\nother: \\"x\\"\\t\\\\"\nkey="a=b"\n';
  assert.deepEqual(parseDownwardApi(text), {
    values: { app: "httpbin", version: "v1", config: 'foo: bar\nother: "x"\t\\', key: "a=b" },
    problems: [],
  });
});

test("parseDownwardApi() reads Go's escapes for other characters", () => {
  assert.deepEqual(parseDownwardApi('a="\\x07\\u00e9\\U0001F600\\v"').values, { a: "\x07é😀\v" });
});

test("parseDownwardApi() tells the lines it cannot read and keeps the others", () => {
  const { values, problems } = parseDownwardApi('good="1"\nbad=unquoted\nopen="x\nno separator\n');
  assert.deepEqual(values, { good: "1" });
  assert.deepEqual(problems, [
    "line 2: the value must be in double quotes: bad=unquoted",
    'line 3: the value must be in double quotes: open="x',
  ]);
});

test("parseDownwardApi() keeps __proto__ as a plain key", () => {
  const { values } = parseDownwardApi('__proto__="x"');
  assert.deepEqual(Object.keys(values), ["__proto__"]);
});
