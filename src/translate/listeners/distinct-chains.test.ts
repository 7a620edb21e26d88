import assert from "node:assert/strict";
import { test } from "node:test";
import { type ChainMatch, takeFree } from "./distinct-chains.ts";

const names = (...serverNames: string[]): ChainMatch => ({ serverNames, ranges: [] });
const ranges = (...given: string[]): ChainMatch => ({ serverNames: [], ranges: given });

/** What each of the matches gets, one after the other. */
function taken(...matches: ChainMatch[]): (ChainMatch | undefined)[] {
  const all = new Set<string>();
  return matches.map((match) => takeFree(all, match));
}

test("matches that have nothing in common stay as they are", () => {
  const given = [names("a", "b"), names("c"), ranges("10.0.0.0/8"), names(), { ...names("a"), ranges: ["10.0.0.0/8"] }];
  assert.deepEqual(taken(...given), given);
});

test("a name that is taken is left out, and a match without any left is none", () => {
  assert.deepEqual(taken(names("a"), names("a", "b"), names("A")), [names("a"), names("b"), undefined]);
});

test("a range that is taken is left out, however it is written", () => {
  const [, second, third] = taken(ranges("10.1.2.3/8"), ranges("10.0.0.0/8", "11.0.0.0/8"), ranges("10.0.0.0/8"));
  assert.deepEqual(second, ranges("11.0.0.0/8"));
  assert.equal(third, undefined);
});

test("names are left out before ranges are", () => {
  const [, second] = taken(
    { serverNames: ["a"], ranges: ["10.0.0.0/8"] },
    { serverNames: ["a", "b"], ranges: ["10.0.0.0/8", "11.0.0.0/8"] },
  );
  assert.deepEqual(second, { serverNames: ["b"], ranges: ["10.0.0.0/8", "11.0.0.0/8"] });
});

test("a value that is there twice is there once", () => {
  assert.deepEqual(taken(names("a", "A")), [names("a")]);
  assert.deepEqual(taken(ranges("10.0.0.1", "10.0.0.1/32")), [ranges("10.0.0.1")]);
});

test("one match takes any", () => {
  assert.deepEqual(taken(names("*", "a"), names()), [names("*", "a"), undefined]);
  assert.deepEqual(taken(ranges("0.0.0.0/0"), names()), [ranges("0.0.0.0/0"), undefined]);
});
