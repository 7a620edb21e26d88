import assert from "node:assert/strict";
import { test } from "node:test";
import { readDocument, readDocuments } from "./read.ts";

function readValue(text: string): unknown {
  const { value, error } = readDocument(text);
  assert.equal(error, undefined);
  return value;
}

test("plain scalars are read as Kubernetes tools read them", () => {
  const cases: Record<string, unknown> = {
    y: true,
    Yes: true,
    on: true,
    n: false,
    OFF: false,
    null: null,
    "~": null,
    "12:30": "12:30",
    "2024-01-01": "2024-01-01",
    "2024-01-01T00:00:00Z": "2024-01-01T00:00:00Z",
    "10": 10,
    "-0x10": -16,
    "0777": 511,
    "0o17": 15,
    "0b101": 5,
    "08": 8,
    "1_000": 1000,
    "1e3": 1000,
    ".5": 0.5,
    ".5_0": 0.5,
    "+._5": 0.5,
    "._0": "._0",
    "1.": 1,
    ".nan": ".nan",
    ".inf": ".inf",
    "1.2.3.4": "1.2.3.4",
    "80/TCP": "80/TCP",
    v1: "v1",
    "0x": "0x",
    "+": "+",
  };
  for (const [text, value] of Object.entries(cases)) assert.deepEqual(readValue(`[${text}]`), [value], text);
  assert.deepEqual(readValue(`["on", '1', !!str 2]`), ["on", "1", "2"]);
});

test("keys become text as in JSON, and merge keys are followed", () => {
  assert.deepEqual(readValue("{1: a, on: b}"), { 1: "a", true: "b" });
  assert.deepEqual(readValue("base: &b {x: 1, y: 2}\nmore: {<<: *b, x: 3}"), {
    base: { x: 1, true: 2 },
    more: { true: 2, x: 3 },
  });
});

test("__proto__ is a key like any other", () => {
  const value = readValue("{__proto__: {polluted: true}, a: 1}") as object;
  assert.deepEqual(Object.keys(value), ["__proto__", "a"]);
  assert.equal(Reflect.get(Object.prototype, "polluted"), undefined);
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
});

test("readDocuments() gives each document with its line and leaves out the empty ones", () => {
  const documents = readDocuments(
    "# comment\n---\na: 1\n---\n# nothing\n--- # rest\n\nb: 2\n...\n---\n---   \nc: |\n  x\n",
  );
  assert.deepEqual(
    documents.map(({ value, line }) => [value, line]),
    [
      [{ a: 1 }, 3],
      [{ b: 2 }, 8],
      [{ c: "x\n" }, 12],
    ],
  );
});

test("readDocuments() reads Windows line ends, a byte order mark and JSON", () => {
  assert.deepEqual(
    readDocuments("\uFEFFa: 1\r\n---\r\nb: 2\r\n").map(({ value, line }) => [value, line]),
    [
      [{ a: 1 }, 1],
      [{ b: 2 }, 3],
    ],
  );
  assert.deepEqual(
    readDocuments('{\n\t"a": [1,\n\t2]\n}').map(({ value }) => value),
    [{ a: [1, 2] }],
  );
});

test("readDocuments() reports a broken document with its line and reads the others", () => {
  const documents = readDocuments("a: 1\n---\nb: 2\nc: [\n---\nd: 3\n");
  assert.deepEqual(
    documents.map(({ value }) => value),
    [{ a: 1 }, undefined, { d: 3 }],
  );
  assert.match(documents[1]?.error?.message ?? "", /^is not YAML: /);
  assert.equal(documents[1]?.error?.line, 5);
});

test("a key that is given twice is a warning, and the last one counts", () => {
  const { value, warning } = readDocument("a: 1\nb: 2\na: 3\n");
  assert.deepEqual(value, { a: 3, b: 2 });
  assert.deepEqual(warning, { message: "gives a key twice: the last one counts", line: 3 });
});

test("a closing bracket may stand below its key", () => {
  assert.deepEqual(readValue('a:\n  args: [\n    "x",\n  ]\n  more: {\n  y: 1\n  }\n'), {
    a: { args: ["x"], more: { true: 1 } },
  });
});

test("what is no text is refused", () => {
  assert.equal(readDocument("a\0b").error?.message, "is not a text file");
});

test("nesting has a limit", () => {
  assert.match(readDocument("[".repeat(10_000)).error?.message ?? "", /nesting/);
});

test("aliases that would repeat too much are refused", () => {
  const levels = Array.from({ length: 30 }, (_, i) => `l${i + 1}: &l${i + 1} [*l${i}, *l${i}]`);
  const { error } = readDocument(`l0: &l0 [x, x]\n${levels.join("\n")}`);
  assert.match(error?.message ?? "", /^repeats more than 100000 values by aliases$/);
});

test("an alias inside itself is refused", () => {
  assert.deepEqual(readDocument("x: 1\na: &a\n- *a\n").error, { message: 'uses alias "a" inside itself', line: 3 });
});

test("an alias of something unknown is refused", () => {
  assert.match(readDocument("a: *b").error?.message ?? "", /unidentified alias "b"/);
});

test("readDocument() tells how to begin another document behind the end of one", () => {
  assert.deepEqual(readDocument("a: 1\n...\nb: 2\n").error, {
    message: 'goes on behind "...", which ends a document: begin the next one with a line "---"',
    line: 3,
  });
  assert.equal(readDocument("a: 1\n...\n").error, undefined);
  assert.match(readDocument("a: 1\n...\n---\nb: 2\n").error?.message ?? "", /several documents/);
});

test("readDocument() refuses several documents", () => {
  assert.deepEqual(readDocument("---\na: 1\n---\nb: 2\n").error, {
    message: "holds several documents: only one is allowed",
    line: 4,
  });
});

test("readDocument() takes documents without content behind the one that it reads for none", () => {
  for (const end of ["---\n", "---", "---\n# end\n", "---\n---\n"])
    assert.deepEqual(readDocument(`a: 1\n${end}`), { ...readDocument("a: 1\n") }, end);
  assert.match(readDocument("a: 1\n---\n---\nb: 2\n").error?.message ?? "", /several documents/);
});
