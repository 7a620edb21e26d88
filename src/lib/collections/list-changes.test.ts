import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { changedSorted, listChanges, replacements, withReplacements } from "./list-changes.ts";

const numbers = fc.uniqueArray(fc.integer({ min: 0, max: 40 }), { maxLength: 30 });
const ascending = (a: number, b: number) => a - b;

test("listChanges() tells what only one of two lists has", () => {
  fc.assert(
    fc.property(numbers, numbers, (before, after) => {
      const { removed, added } = listChanges(before, after);
      assert.deepEqual(new Set(removed), new Set(before).difference(new Set(after)));
      assert.deepEqual(new Set(added), new Set(after).difference(new Set(before)));
      assert.equal(removed.length + added.length, new Set(before).symmetricDifference(new Set(after)).size);
    }),
  );
});

test("listChanges() goes by identity", () => {
  const [a, b, other] = [{ name: "a" }, { name: "b" }, { name: "b" }];
  assert.deepEqual(listChanges([a, b], [a, other]), { removed: [b], added: [other] });
  assert.equal(listChanges([a, b], [a, other]).added[0], other);
});

test("listChanges() finds nothing in lists that differ only in order", () => {
  assert.deepEqual(listChanges([1, 2, 3], [3, 1, 2]), { removed: [], added: [] });
});

test("changedSorted() equals sorting the list of after", () => {
  fc.assert(
    fc.property(numbers, numbers, (before, after) => {
      const sorted = before.toSorted(ascending);
      const changed = changedSorted(sorted, listChanges(sorted, after), ascending);
      assert.deepEqual(changed, after.toSorted(ascending));
      assert.deepEqual(sorted, before.toSorted(ascending));
    }),
  );
});

test("changedSorted() keeps a list without changes", () => {
  const sorted = [1, 2, 3];
  assert.equal(changedSorted(sorted, { removed: [], added: [] }, ascending), sorted);
});

test("changedSorted() puts an item after those of the same place", () => {
  const items = [{ at: 1 }, { at: 2 }, { at: 3 }];
  const added = { at: 2 };
  const changed = changedSorted(items, { removed: [], added: [added] }, (a, b) => a.at - b.at);
  assert.deepEqual(
    changed.map((item) => item === added),
    [false, false, true, false],
  );
});

test("replacements() tells what stands in other places, if nothing else differs", () => {
  assert.deepEqual(replacements([1, 2, 3], [1, 4, 3]), [[2, 4]]);
  assert.deepEqual(replacements([1, 2], [1, 2]), []);
  assert.equal(replacements([1, 2], [1, 2, 3]), undefined);
  const long = Array.from({ length: 100 }, (_, i) => i);
  assert.equal(
    replacements(
      long,
      long.map((item) => item + 1),
    ),
    undefined,
  );
});

test("withReplacements() makes of one list the other", () => {
  fc.assert(
    fc.property(numbers, numbers, (before, after) => {
      const found = replacements(before, after);
      if (found !== undefined) assert.deepEqual(withReplacements(before, found), after);
    }),
  );
  assert.deepEqual(
    withReplacements(
      [1, 2],
      [
        [1, 2],
        [2, 1],
      ],
    ),
    [2, 1],
  );
  assert.equal(withReplacements([1, 2], [[3, 4]]), undefined);
});
