import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { bySpecificity, completeHost, hostsMatch, intersectHosts, isSubsetOf, mostSpecific } from "./hosts.ts";

test("hostsMatch() finds a common name on either side", () => {
  for (const [a, b, expected] of [
    ["foo.com", "foo.com", true],
    ["foo.com", "bar.com", false],
    ["*.com", "foo.com", true],
    ["*.foo.com", "foo.com", false],
    ["*", "foo.com", true],
    ["*", "*.com", true],
    ["*.foo.com", "*.com", true],
    ["*.foo.com", "*.bar.com", false],
  ] as const) {
    assert.equal(hostsMatch(a, b), expected, `${a} ${b}`);
    assert.equal(hostsMatch(b, a), expected, `${b} ${a}`);
  }
});

test("isSubsetOf() goes one way", () => {
  assert.ok(isSubsetOf("a.foo.com", "*.foo.com"));
  assert.ok(isSubsetOf("*.foo.com", "*.com"));
  assert.ok(!isSubsetOf("*.com", "*.foo.com"));
  assert.ok(!isSubsetOf("*.com", "a.com"));
});

test("a subset always matches", () => {
  const host = fc.constantFrom("*", "*.com", "*.foo.com", "foo.com", "a.foo.com", "*.net");
  fc.assert(fc.property(host, host, (a, b) => !isSubsetOf(a, b) || hostsMatch(a, b)));
});

test("intersectHosts() keeps the narrower name of each pair, once", () => {
  assert.deepEqual(intersectHosts(["foo.com", "*.net"], ["*.com", "bar.net", "foo.com"]), ["foo.com", "bar.net"]);
  assert.deepEqual(intersectHosts(["foo.com"], ["bar.com"]), []);
});

test("completeHost() takes a short name for a service of the namespace", () => {
  assert.equal(completeHost("reviews", "ns", "cluster.local"), "reviews.ns.svc.cluster.local");
  assert.equal(completeHost("reviews", "ns", ""), "reviews.ns");
  for (const complete of ["*", "a.b", "fd00::1", ""])
    assert.equal(completeHost(complete, "ns", "cluster.local"), complete);
});

test("mostSpecific() prefers the exact name, then the longest wildcard", () => {
  const exact = new Map([["a.foo.com", 1]]);
  const wildcards = new Map([
    ["*.com", 2],
    ["*.foo.com", 3],
    ["*", 4],
  ]);
  assert.equal(mostSpecific("a.foo.com", exact, wildcards), 1);
  assert.equal(mostSpecific("b.foo.com", exact, wildcards), 3);
  assert.equal(mostSpecific("*.foo.com", exact, wildcards), 3);
  assert.equal(mostSpecific("x.net", exact, wildcards), 4);
  assert.equal(mostSpecific("x.net", exact, new Map()), undefined);
});

test("bySpecificity() puts wildcards last and long names first", () => {
  assert.deepEqual(["*", "a.com", "*.com", "b.com", "long.com"].sort(bySpecificity), [
    "long.com",
    "a.com",
    "b.com",
    "*.com",
    "*",
  ]);
});
