import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { listChanges } from "#lib/collections/list-changes.ts";
import { keepChanged, keepIdentity, keepSorted, type ListRules } from "./keep-identity.ts";

test("keepIdentity() gives back the previous value exactly when the two are equal", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (previous, next) => {
      assert.ok(Object.is(keepIdentity(previous, structuredClone(previous)), previous));
      assert.deepEqual(keepIdentity(previous, next), next);
    }),
  );
});

test("keepIdentity() keeps the parts that are equal", () => {
  const previous = { a: { b: [1, 2] }, c: { d: 1 } };
  const kept = keepIdentity(previous, { a: { b: [1, 2] }, c: { d: 2 } });
  assert.notEqual(kept, previous);
  assert.equal(kept.a, previous.a);
  assert.deepEqual(kept.c, { d: 2 });
});

test("keepIdentity() tells a missing field from one that is undefined", () => {
  const previous = { a: 1 };
  assert.notEqual(keepIdentity(previous, { a: 1, b: undefined }), previous);
});

interface Item {
  readonly key: string;
  readonly value: number;
}
const RULES: ListRules<Item> = {
  keyOf: ({ key }) => key,
  keep: keepIdentity,
  order: (a, b) => (a.key === b.key ? 0 : a.key < b.key ? -1 : 1),
};

test("keepSorted() sorts, and keeps equal items and lists", () => {
  const first = keepSorted(
    [],
    [
      { key: "b", value: 1 },
      { key: "a", value: 1 },
    ],
    RULES,
  );
  assert.deepEqual(
    first.map(({ key }) => key),
    ["a", "b"],
  );
  assert.equal(
    keepSorted(
      first,
      [
        { key: "b", value: 1 },
        { key: "a", value: 1 },
      ],
      RULES,
    ),
    first,
  );
  const second = keepSorted(
    first,
    [
      { key: "c", value: 1 },
      { key: "b", value: 2 },
      { key: "a", value: 1 },
    ],
    RULES,
  );
  assert.deepEqual(
    second.map(({ key, value }) => `${key}${value}`),
    ["a1", "b2", "c1"],
  );
  assert.equal(second[0], first[0]);
});

test("keepSorted() does not take two equal items for two different ones before", () => {
  const a = { key: "a", value: 1 };
  const before = [a, { key: "a", value: 2 }];
  assert.deepEqual(keepSorted(before, [a, a], RULES), [a, a]);
});

test("keepSorted() lets one of two equal items go", () => {
  const item = () => ({ key: "a", value: 1 });
  const twice = keepSorted([item()], [item(), item()], RULES);
  assert.deepEqual(keepSorted(twice, [item()], RULES), [item()]);
});

test("keepChanged() gives what keepSorted() gives, or nothing", () => {
  const items = fc.array(fc.record({ key: fc.constantFrom("a", "b", "c", "d"), value: fc.constantFrom(1, 2) }), {
    maxLength: 5,
  });
  fc.assert(
    fc.property(items, items, fc.boolean(), (before, more, isShared) => {
      const previous = keepSorted([], before, RULES);
      const next = isShared ? [...before.slice(1), ...more] : more;
      const changed = keepChanged(previous, listChanges(before, next), RULES);
      if (changed !== undefined) assert.deepEqual(changed, keepSorted(previous, next, RULES));
    }),
  );
});

test("keepChanged() leaves it to keepSorted() where an item that stays has moved among those of its key", () => {
  const [first, second] = [
    { key: "d", value: 2 },
    { key: "d", value: 1 },
  ];
  const next = [second, { ...first }, { key: "a", value: 1 }];
  assert.equal(keepChanged([first, second], listChanges([first, second], next), RULES), undefined);
});
