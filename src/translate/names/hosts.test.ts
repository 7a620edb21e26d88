import assert from "node:assert/strict";
import { test } from "node:test";
import { bySpecificity, intersectHosts, mostSpecific } from "./hosts.ts";

test("intersectHosts() keeps the narrower name of each pair, once", () => {
  assert.deepEqual(intersectHosts(["foo.com", "*.net"], ["*.com", "bar.net", "foo.com"]), ["foo.com", "bar.net"]);
  assert.deepEqual(intersectHosts(["foo.com"], ["bar.com"]), []);
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
