import assert from "node:assert/strict";
import { test } from "node:test";
import { hostsMatch, isSubsetOf } from "./host.ts";

test("isSubsetOf() holds when every name that fits the first fits the second", () => {
  const cases: [string, string, boolean][] = [
    ["a.com", "a.com", true],
    ["a.com", "b.com", false],
    ["a.com", "*.com", true],
    ["*.com", "a.com", false],
    ["*.a.com", "*.com", true],
    ["*.com", "*.a.com", false],
    ["a.com", "*.a.com", false],
    ["*", "*", true],
    ["*.com", "*", true],
    ["*", "*.com", false],
    ["*-a.com", "*a.com", true],
  ];
  for (const [host, other, expected] of cases) assert.equal(isSubsetOf(host, other), expected, `${host} of ${other}`);
});

test("hostsMatch() is the same both ways", () => {
  const cases: [string, string, boolean][] = [
    ["a.com", "*.com", true],
    ["*.com", "*.a.com", true],
    ["*.a.com", "a.com", false],
    ["*", "a", true],
    ["*.a.com", "*.b.com", false],
  ];
  for (const [a, b, expected] of cases) assert.deepEqual([hostsMatch(a, b), hostsMatch(b, a)], [expected, expected]);
});
