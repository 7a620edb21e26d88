import assert from "node:assert/strict";
import { test } from "node:test";
import { completeHost, hostsMatch, isSubsetOf } from "./host.ts";

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

test("completeHost() takes a short name for a service of the namespace", () => {
  assert.equal(completeHost("reviews", "ns", "cluster.local"), "reviews.ns.svc.cluster.local");
  assert.equal(completeHost("reviews", "ns", ""), "reviews.ns");
  for (const complete of ["*", "a.b", "fd00::1", ""])
    assert.equal(completeHost(complete, "ns", "cluster.local"), complete);
});
