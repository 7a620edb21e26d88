import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { finished } from "#lib/async/steps.ts";
import { changedMap, madeFrom, mappedAfter, memoized } from "./memo.ts";

test("memoized() calls again only when an input differs", () => {
  let calls = 0;
  const owner = {};
  const add = memoized((_: object, items: readonly number[], more: number) => {
    calls++;
    return items.reduce((a, b) => a + b, more);
  });
  assert.equal(add(owner, [1, 2], 3), 6);
  assert.equal(add(owner, [1, 2], 3), 6);
  assert.equal(calls, 1);
  assert.equal(add(owner, [1, 2, 3], 3), 9);
  assert.equal(add(owner, [1, 2, 3], 4), 10);
  assert.equal(add({}, [1, 2, 3], 4), 10);
  assert.equal(calls, 4);
});

test("madeFrom() gives the previous result for the same items", () => {
  const double = madeFrom((_: readonly number[], items: readonly number[]) => items.map((item) => item * 2));
  const first = double([], [1, 2]);
  assert.deepEqual(first, [2, 4]);
  assert.equal(double(first, [1, 2]), first);
  assert.deepEqual(double(first, [1, 3]), [2, 6]);
});

test("madeFrom() tells what the previous result was made from", () => {
  const told: unknown[] = [];
  const copy = madeFrom((_: readonly number[], items: readonly number[], before: readonly number[] | undefined) => {
    told.push(before);
    return [...items];
  });
  copy(copy([], [1]), [2]);
  assert.deepEqual(told, [undefined, [1]]);
});

describe("mappedAfter()", () => {
  const [a, b, c, d] = [{}, {}, {}, {}].map((_, i) => ({ name: "abcd"[i] ?? "" }));
  const made: string[] = [];
  const mapped = (last: readonly unknown[], items: readonly unknown[]) => {
    made.length = 0;
    const make = (item: unknown) => {
      const { name } = item as { readonly name: string };
      made.push(name);
      return name.toUpperCase();
    };
    const values = last.map((item) => (item as { readonly name: string }).name.toUpperCase());
    return finished(mappedAfter({ items: last, values }, items, make)).join("");
  };

  test("makes what is new, wherever it stands", () => {
    assert.deepEqual([mapped([a, b, c], [a, d, c]), made], ["ADC", ["d"]]);
    assert.deepEqual([mapped([a, b, c], [d, a, b, c]), made], ["DABC", ["d"]]);
    assert.deepEqual([mapped([a, b, c, d], [b, d]), made], ["BD", []]);
    assert.deepEqual([mapped([], [a]), made], ["A", ["a"]]);
    assert.deepEqual([mapped([a], []), made], ["", []]);
  });

  test("gives each its own value in another order, too", () => {
    assert.equal(mapped([a, b, c], [c, b, a]), "CBA");
    assert.equal(mapped([a, b, c, d], [d, a, c]), "DAC");
    assert.equal(mapped([a, b], [b, b, a]), "BBA");
  });
});

describe("changedMap()", () => {
  const entryOf = (item: readonly [string, number]) => item;
  const [a1, a2, b1, c1] = [["a", 1] as const, ["a", 2] as const, ["b", 1] as const, ["c", 1] as const];
  const map = new Map([a1, b1]);
  const changed = (after: readonly (readonly [string, number])[]) =>
    changedMap(map, { before: [a1, b1], after }, entryOf);

  test("adds, replaces and removes, and leaves the map of before as it was", () => {
    assert.deepEqual(changed([a2, b1, c1]), new Map([a2, b1, c1]));
    assert.deepEqual(changed([b1]), new Map([b1]));
    assert.deepEqual(map, new Map([a1, b1]));
  });

  test("is the same map where it holds the same", () => {
    assert.equal(changed([["a", 1], b1]), map);
    assert.equal(changed([b1, a1]), map);
  });

  test("does not say which of two with one key counts", () => {
    assert.equal(changed([a1, b1, a2]), undefined);
    assert.equal(changed([["b", 1], b1]), undefined);
    assert.equal(
      changed([
        ["a", 1],
        ["a", 1],
      ]),
      undefined,
    );
    assert.equal(changedMap(new Map([a1]), { before: [a1, a2], after: [a2] }, entryOf), undefined);
  });
});
