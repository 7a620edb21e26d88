import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDownwardApi } from "./downward-api.ts";

function valuesOf(text: string) {
  return { ...parseDownwardApi(text).values };
}

test("parseDownwardApi() reads quoted values by key", () => {
  assert.deepEqual(valuesOf('app="httpbin"\nconfig="a: b\\nc: \\"d\\" \\\\ \\t"\n\nbar="a=b"'), {
    app: "httpbin",
    config: 'a: b\nc: "d" \\ \t',
    bar: "a=b",
  });
});

test("parseDownwardApi() reads letters by code, also those of several bytes, and raw values", () => {
  assert.deepEqual(valuesOf('a="\\u00e9\\U0001F600"\nb="\\xc3\\xa9"\nc="\\101"\nd=`x\\n`'), {
    a: "é😀",
    b: "é",
    c: "A",
    d: "x\\n",
  });
});

test("parseDownwardApi() takes any key, also one that objects have", () => {
  assert.deepEqual(Object.entries(parseDownwardApi('__proto__="x"\nconstructor="y"').values), [
    ["__proto__", "x"],
    ["constructor", "y"],
  ]);
});

for (const line of ["a=b", 'a="b', 'a="\\q"', 'a="b" ', 'a="\\x4"', "a=`b", "a="]) {
  test(`parseDownwardApi() reads nothing when a line is wrong: ${line}`, () => {
    const { values, problem } = parseDownwardApi(`good="1"\n${line}`);
    assert.deepEqual({ ...values }, {});
    assert.equal(problem, `line 2: the value must be quoted as by Go: ${line}`);
  });
}
