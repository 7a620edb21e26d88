import assert from "node:assert/strict";
import { test } from "node:test";
import { list, map, message, oneof, required } from "./message.ts";
import { parse, parseSpec } from "./parse.ts";
import { bool, bytes, double, duration, enumeration, int32, intOrString, string, struct, uint32 } from "./scalars.ts";

const schema = message(
  {
    name: required(string()),
    retryOn: string(),
    attempts: uint32(),
    offset: int32(),
    consecutive5xxErrors: uint32(),
    share: double(),
    enabled: bool(),
    timeout: duration(),
    mode: enumeration("OFF", "ON"),
    body: bytes(),
    port: intOrString(),
    any: struct(),
    tags: map(string()),
    children: list(message({ exact: string(), prefix: string() }, oneof("exact", "prefix"))),
  },
  oneof("attempts", "share"),
);

function problemsOf(raw: unknown): string[] {
  return parse(schema, raw, "spec").problems.map(({ field, message, severity }) => `${severity} ${field} ${message}`);
}

test("parse() keeps what is unset apart from what is set to nothing", () => {
  const { value } = parse(schema, { name: "", enabled: false, attempts: 0, tags: {}, timeout: null }, "spec");
  assert.deepEqual(value, { name: "", enabled: false, attempts: 0, tags: {} });
});

test("parseSpec() takes an empty list for none, and leaves maps, messages and lists that are needed", () => {
  const listed = message({
    wanted: required(list(string())),
    names: list(string()),
    tags: map(string()),
    inner: schema,
  });
  const raw = { wanted: [], names: [], tags: {}, inner: { name: "a", children: [] } };
  assert.deepEqual(parseSpec(listed, raw), { value: { wanted: [], tags: {}, inner: { name: "a" } }, problems: [] });
  assert.deepEqual(parse(listed, raw, "").value, raw);
  assert.deepEqual(
    parseSpec(listed, { wanted: [], tags: [] }).problems.map(({ field }) => field),
    ["spec.tags"],
  );
});

test("parse() reads camelCase and snake_case", () => {
  const { value, problems } = parse(schema, { name: "a", retry_on: "5xx", consecutive_5xx_errors: 3 }, "spec");
  assert.deepEqual([value, problems], [{ name: "a", retryOn: "5xx", consecutive5xxErrors: 3 }, []]);
});

test("parse() refuses a field that is given in both spellings", () => {
  assert.deepEqual(problemsOf({ name: "a", retryOn: "5xx", retry_on: "reset" }), [
    'error spec.retry_on is "retryOn" again',
  ]);
});

test("parse() reads numbers that are quoted, enums by number and durations of Go", () => {
  const { value } = parse(
    schema,
    { name: "a", attempts: "80", offset: -1, mode: 1, timeout: "1m30s", body: "aGk=", port: "http" },
    "spec",
  );
  assert.deepEqual(value, {
    name: "a",
    attempts: 80,
    offset: -1,
    mode: "ON",
    timeout: 90_000,
    body: "aGk=",
    port: "http",
  });
});

test("parse() reads quoted numbers as JSON writes them", () => {
  for (const offset of ["0", "-7", "80"]) assert.deepEqual(problemsOf({ name: "a", offset }), [], offset);
  for (const offset of ["080", "1e2", "80.0", "+1", "0x10", ""]) {
    assert.equal(problemsOf({ name: "a", offset }).length, 1, offset);
  }
  assert.equal(parse(schema, { name: "a", share: "1e2" }, "spec").value?.share, 100);
  assert.equal(problemsOf({ name: "a", share: "01.5" }).length, 1);
});

test("parse() reports each wrong value with its field and what is allowed", () => {
  assert.deepEqual(
    problemsOf({
      retryOn: true,
      attempts: -1,
      enabled: "true",
      timeout: 5,
      mode: "on",
      body: "%",
      port: 1.5,
      any: [],
      tags: { a: 1 },
      children: [{ exact: 1 }, "x"],
    }),
    [
      "error spec.name is required",
      "error spec.retryOn must be text, not true: put it in quotes",
      "error spec.attempts must be a whole number from 0 to 4294967295, not -1",
      'error spec.enabled must be true or false, not "true"',
      'error spec.timeout must be a duration such as "10s", "1.5h" or "250ms", not 5',
      'error spec.mode must be one of OFF, ON, not "on"',
      'error spec.body must be base64 text, not "%"',
      "error spec.port must be a number or text, not 1.5",
      "error spec.any must be an object, not a list",
      "error spec.tags.a must be text, not 1: put it in quotes",
      "error spec.children[0].exact must be text, not 1: put it in quotes",
      "error spec.children[1] must be an object",
    ],
  );
});

test("parse() reads base64 as Go does: with its padding, on several lines", () => {
  for (const body of ["aGVsbG8=", "aGVs\nbG8=\n", "+/+/", ""]) assert.deepEqual(problemsOf({ name: "a", body }), []);
  for (const body of ["aGVsbG8", "_-__", "0s", "ab=c"]) assert.equal(problemsOf({ name: "a", body }).length, 1, body);
});

test("parse() refuses containers of the wrong kind", () => {
  assert.deepEqual(problemsOf([]), ["error spec must be an object"]);
  assert.deepEqual(problemsOf({ name: "a", children: {}, tags: [] }), [
    "error spec.tags must be an object",
    "error spec.children must be a list",
  ]);
  assert.deepEqual(problemsOf({ name: "a", tags: { a: null }, children: [null] }), [
    "error spec.tags.a must be text, not null",
    "error spec.children[0] must be an object",
  ]);
});

test("parse() refuses two fields of which one is allowed, also in a list", () => {
  assert.deepEqual(problemsOf({ name: "a", attempts: 1, share: 2, children: [{ exact: "a", prefix: "b" }] }), [
    'error spec.children[0].prefix cannot be set together with "exact": only one of exact, prefix is allowed',
    'error spec.share cannot be set together with "attempts": only one of attempts, share is allowed',
  ]);
});

test("parse() drops unknown fields with a warning and keeps the rest", () => {
  const { value, problems } = parse(schema, { name: "a", retrys: 1, children: [{ "x.y": 1 }] }, "spec");
  assert.deepEqual(value, { name: "a", children: [{}] });
  assert.deepEqual(
    problems.map(({ field, severity }) => [field, severity]),
    [
      ["spec.retrys", "warning"],
      ['spec.children[0]["x.y"]', "warning"],
    ],
  );
});

test("parse() is not fooled by __proto__ and other inherited names", () => {
  const raw: unknown = JSON.parse('{"name": "a", "__proto__": {"retryOn": "5xx"}, "constructor": 1}');
  const { value, problems } = parse(schema, raw, "spec");
  assert.deepEqual(Object.keys(value ?? {}), ["name"]);
  assert.equal(value?.retryOn, undefined);
  assert.deepEqual(
    problems.map(({ field }) => field),
    ["spec.__proto__", "spec.constructor"],
  );
  const inMap: unknown = JSON.parse('{"name": "a", "tags": {"__proto__": "b", "constructor": "c"}}');
  assert.deepEqual(parse(schema, inMap, "spec").problems, [
    { field: "spec.tags.__proto__", message: "is not a usable key", severity: "error" },
  ]);
});
