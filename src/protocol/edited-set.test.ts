import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { editedSet } from "./edited-set.ts";

const name = fc.integer({ min: 0, max: 400 }).map(String);
const edits = fc.record({ add: fc.array(name, { maxLength: 5 }), remove: fc.array(name, { maxLength: 5 }) });

test("editedSet() has what a copy would have, at every step", () => {
  fc.assert(
    fc.property(fc.uniqueArray(name, { maxLength: 300 }), fc.array(edits, { maxLength: 100 }), (start, all) => {
      let copy = new Set(start);
      let set: ReadonlySet<string> = copy;
      for (const { add, remove } of all) {
        copy = new Set([...copy, ...add]).difference(new Set(remove));
        const before = [...set];
        const after = editedSet(set, { add, remove });
        assert.deepEqual([...set], before, "the set before was changed");
        set = after;
        assert.equal(set.size, copy.size);
        assert.ok(copy.isSubsetOf(set) && set.isSubsetOf(copy));
        assert.deepEqual([...set].toSorted(), [...copy].toSorted());
        for (const one of [...add, ...remove]) assert.equal(set.has(one), copy.has(one));
      }
      const other = new Set(["1", "2", "x"]);
      assert.deepEqual(set.union(other), copy.union(other));
      assert.deepEqual(set.intersection(other), copy.intersection(other));
      assert.deepEqual(set.difference(other), copy.difference(other));
      assert.deepEqual(other.difference(set), other.difference(copy));
    }),
  );
});

test("editedSet() is the very set where nothing changes", () => {
  const set = new Set(["a"]);
  assert.equal(editedSet(set, { add: ["a"], remove: ["b"] }), set);
});

test("an edit costs about the same whatever the size of the set", () => {
  const cost = (count: number) => {
    const before = process.cpuUsage();
    let set: ReadonlySet<string> = new Set();
    for (let i = 0; i < count; i++) set = editedSet(set, { add: [`${i}`], remove: i % 3 === 0 ? [`${i >> 1}`] : [] });
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  };
  cost(20_000);
  const [once, fourTimes] = [cost(25_000), cost(100_000)];
  // A copy for each edit takes 16 times as long.
  assert.ok(fourTimes < 8 * once + 200, `${once} ms, then ${fourTimes} ms`);
});
