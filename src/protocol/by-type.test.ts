import assert from "node:assert/strict";
import { test } from "node:test";
import { ByType } from "./by-type.ts";

test("ByType keeps types in the order they came, and changes nobody else's value", () => {
  const empty = ByType.empty<number>();
  const two = empty.with("a", 1).with("b", 2);
  const changed = two.with("a", 3);
  assert.deepEqual([empty.size, two.size, changed.size], [0, 2, 2]);
  assert.deepEqual(
    [changed.keys(), changed.values()],
    [
      ["a", "b"],
      [3, 2],
    ],
  );
  assert.deepEqual([two.get("a"), changed.get("a"), changed.get("b")], [1, 3, 2]);
});

test("ByType knows nothing of types that nobody gave it, whatever their names", () => {
  const types = ByType.empty<number>().with("a", 1);
  for (const name of ["b", "", "length", "__proto__", "constructor"]) assert.equal(types.get(name), undefined);
  assert.equal(types.with("__proto__", 2).get("__proto__"), 2);
});
