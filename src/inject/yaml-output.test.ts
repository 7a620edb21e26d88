import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readDocument } from "#lib/yaml/read.ts";
import { formatYaml } from "./yaml-output.ts";

test("formatYaml() writes as the tools of Kubernetes do", () => {
  const value = {
    z: [],
    a: { text: "plain", star: "*", number: "15020", yes: "on", empty: "", json: '{"a":1}', time: "2020-01-02" },
    list: [{ name: "x", args: ["-p", "a: b"] }, "item", [1, 2]],
    block: "one\n two\n",
    stripped: "one\ntwo",
    nothing: null,
    object: {},
  };
  assert.equal(
    formatYaml(value),
    `a:
  empty: ""
  json: '{"a":1}'
  number: "15020"
  star: '*'
  text: plain
  time: "2020-01-02"
  "yes": "on"
block: |
  one
   two
list:
- args:
  - -p
  - 'a: b'
  name: x
- item
- - 1
  - 2
nothing: null
object: {}
stripped: |-
  one
  two
z: []
`,
  );
});

test("formatYaml() writes what reads as the same", () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: fc.constantFrom("a", " ", "\n", ":", "#", "-", "'", '"', "1", ".", "e", "[", "\t", "é", "~") }),
  );
  const value = fc.letrec((tie) => ({
    node: fc.oneof({ depthSize: "small" }, text, fc.integer(), fc.boolean(), tie("list"), tie("map")),
    list: fc.array(tie("node"), { maxLength: 3 }),
    map: fc.dictionary(
      text.filter((key) => key !== "__proto__"),
      tie("node"),
      { maxKeys: 3 },
    ),
  })).map;
  fc.assert(
    fc.property(value, (given) => {
      const plain: unknown = JSON.parse(JSON.stringify(given));
      const { value: read, error } = readDocument(formatYaml(plain));
      assert.equal(error, undefined);
      assert.deepEqual(read, plain);
    }),
    { numRuns: 300 },
  );
});
