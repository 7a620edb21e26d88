import assert from "node:assert/strict";
import { test } from "node:test";
import { derived, interned, kept } from "./indexes.ts";

test("derived() computes once per set of sources and key", () => {
  let calls = 0;
  const sum = derived((key: string, a: readonly number[], b: readonly number[]) => {
    calls++;
    return `${key}${a.length + b.length}`;
  });
  const [one, two] = [[1], [1, 2]];
  assert.equal(sum("k", one, two), "k3");
  assert.equal(sum("k", one, two), "k3");
  assert.equal(calls, 1);
  assert.equal(sum("l", one, two), "l3");
  assert.equal(sum("k", two, one), "k3");
  assert.equal(sum("k", [1], two), "k3");
  assert.equal(calls, 4);
});

test("derived() remembers undefined as well", () => {
  let calls = 0;
  const nothing = derived((_: string, __: object) => void calls++);
  const source = {};
  nothing("", source);
  nothing("", source);
  assert.equal(calls, 1);
});

test("kept() makes anew when anything it came from is another object", () => {
  const owner = {};
  const [a, b] = [{}, {}];
  const first = kept(owner, "k", [a], () => ({}));
  assert.equal(
    kept(owner, "k", [a], () => ({})),
    first,
  );
  assert.notEqual(
    kept(owner, "other", [a], () => ({})),
    first,
  );
  assert.notEqual(
    kept(owner, "k", [b], () => ({})),
    first,
  );
  assert.notEqual(
    kept(owner, "k", [b, a], () => ({})),
    kept(owner, "k", [b], () => ({})),
  );
});

test("interned() gives one object for equal values of one owner", () => {
  const owner = {};
  assert.equal(interned(owner, { a: 1 }), interned(owner, { a: 1 }));
  assert.notEqual(interned(owner, { a: 1 }), interned(owner, { a: 2 }));
  assert.notEqual(interned(owner, { a: 1 }), interned({}, { a: 1 }));
});
