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

test("formatYaml() ends long lines at a space, and keeps those that readers would not put back", () => {
  const words = (count: number) => Array.from({ length: count }, () => "word").join(" ");
  assert.equal(formatYaml([words(17)]), `- ${words(16)}\n  word\n`, "behind the eightieth column");
  assert.equal(formatYaml({ a: { b: `it's: ${words(16)}` } }), `a:\n  b: 'it''s: ${words(14)}\n    word word'\n`);
  assert.equal(formatYaml({ a: `\t${words(16)}  ${words(2)}` }), `a: "\\t${words(16)}\n  \\ ${words(2)}"\n`);
  const spaced = `${words(17).replaceAll(" ", "  ")}  end`;
  assert.equal(formatYaml([spaced]), `- ${spaced}\n`);
});

test("formatYaml() quotes what would be read as something else, and nothing that would not", () => {
  const times = ["2006-01-02T15:04:05Z", "2006-1-2", "2006-01-02 15:04:05", "2001-12-14t21:59:43.10-05:00"];
  const others = ["190:20:30.15", ".inf", "-.INF", ".nan", "0x1F", "1e3", "1_000", "yes", "~", ""];
  for (const text of [...times, ...others]) assert.equal(formatYaml(text), `"${text}"\n`);
  const plain = [
    "2006-01-02T15:04:05Z07:00",
    "2006-13-45",
    "2006-02-30",
    "2006-01-02 25:00:00",
    "=",
    "a#b",
    "--",
    "1-2",
  ];
  for (const text of plain) assert.equal(formatYaml(text), `${text}\n`);
  for (const text of ["-", "---", "...", "a: b", " x"]) assert.equal(formatYaml(text), `'${text}'\n`);
  assert.equal(formatYaml("\x1b[0m\x01 😀"), '"\\e[0m\\x01 \\U0001F600"\n');
});

test("formatYaml() orders keys as people count", () => {
  const order = [
    "1a",
    "A",
    "a",
    "a-b",
    "a.b",
    "a_b",
    "a1-d",
    "a2",
    "a10",
    "a1b",
    "aB",
    "ab",
    "x1",
    "x01",
    "x10",
    "x100",
  ];
  const object = Object.fromEntries([...order].reverse().map((key) => [key, 0]));
  assert.equal(formatYaml(object), order.map((key) => `${key}: 0\n`).join(""));
});

test("formatYaml() writes what reads as the same", () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: fc.constantFrom("some", "words", " ", "  ", "'", ":", "\t"), minLength: 30, maxLength: 60 }),
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
