import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { changesBetween } from "./changes.ts";

const layer = (versions: Record<string, string>) =>
  new Map(Object.entries(versions).map(([name, version]) => [name, { name, version }]));

test("changesBetween() tells what is new, of another version, and gone", () => {
  const changes = changesBetween([layer({ a: "1", b: "1", c: "1" })], [layer({ a: "1", b: "2", d: "1" })]);
  assert.deepEqual([...changes.changed], ["b", "d"]);
  assert.deepEqual([...changes.removed], ["c"]);
});

test("changesBetween() gives the same answer object to everybody who takes the same way", () => {
  const [from, to, other] = [layer({ a: "1" }), layer({ a: "2" }), layer({ x: "1" })];
  assert.equal(changesBetween([from, other], [to, other]), changesBetween([from, other], [to, other]));
});

test("changesBetween() does not remove what only moved to another layer", () => {
  const changes = changesBetween([layer({ a: "1" }), layer({})], [layer({}), layer({ a: "1" })]);
  assert.deepEqual([...changes.removed], []);
});

test("changesBetween() compares what a proxy kept, all in one layer, with several", () => {
  const changes = changesBetween([layer({ a: "1", b: "1", z: "1" })], [layer({ a: "1" }), layer({ b: "2", c: "1" })]);
  assert.deepEqual([...changes.changed], ["b", "c"]);
  assert.deepEqual([...changes.removed], ["z"]);
});

test("applying the changes to one state gives the other", () => {
  const versions = fc.dictionary(fc.constantFrom("a", "b", "c", "d"), fc.constantFrom("1", "2"));
  fc.assert(
    fc.property(versions, versions, (from, to) => {
      const { changed, removed } = changesBetween([layer(from)], [layer(to)]);
      const result = new Map(Object.entries(from));
      for (const name of removed) result.delete(name);
      for (const name of changed) {
        const version = to[name];
        assert.ok(version);
        result.set(name, version);
      }
      assert.deepEqual(new Map([...result].sort()), new Map(Object.entries(to).sort()));
    }),
  );
});
