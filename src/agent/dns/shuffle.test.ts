import assert from "node:assert/strict";
import { test } from "node:test";
import { shuffled } from "./shuffle.ts";

test("shuffled() keeps all items, reaches every first one, and leaves its input alone", () => {
  const items = Object.freeze(["a", "b", "c", "d"]);
  const first = new Set<string | undefined>();
  for (let i = 0; i < 200; i++) {
    const result = shuffled(items, () => Math.floor(Math.random() * 65_536));
    assert.deepEqual([...result].sort(), items);
    first.add(result[0]);
  }
  assert.equal(first.size, 4);
  assert.deepEqual(
    shuffled(["a", "b"], () => 1),
    ["a", "b"],
  );
  assert.deepEqual(
    shuffled(["a", "b"], () => 2),
    ["b", "a"],
  );
});
