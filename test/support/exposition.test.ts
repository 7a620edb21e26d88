import assert from "node:assert/strict";
import { test } from "node:test";
import { expositionProblems } from "./exposition.ts";

test("expositionProblems() finds none in what Prometheus' format allows", () => {
  const text = [
    "# HELP a_total any text",
    "# TYPE a_total counter",
    'a_total{x="1",y="a\\"b\\\\c\\n"} 1e+06',
    "a_total{} .5",
    "# a comment",
    "# TYPE h histogram",
    'h_bucket{le="+Inf"} 2',
    "h_sum NaN",
    "h_count 2",
    "",
  ].join("\n");
  assert.deepEqual(expositionProblems(text), []);
});

const WRONG: readonly (readonly [string, string])[] = [
  ["# TYPE a gauge\na 1", "the last line does not end"],
  ["a 1\n", "no type: a"],
  ["# TYPE a gauge\n# TYPE a gauge\n", "TYPE twice: a"],
  ["# TYPE a number\n", "unknown type: # TYPE a number"],
  ["# TYPE a gauge\na Nan\n", "no sample: a Nan"],
  ['# TYPE a gauge\na{x="1""} 1\n', 'no sample: a{x="1""} 1'],
  ["# TYPE a gauge\na 1\na 1\n", "twice: a{}"],
  ['# TYPE a gauge\n# TYPE b gauge\na 1\nb 1\na{x=""} 1\n', "not together: a"],
];
for (const [text, problem] of WRONG) {
  test(`expositionProblems() says "${problem}"`, () => {
    assert.deepEqual(expositionProblems(text), [problem]);
  });
}
