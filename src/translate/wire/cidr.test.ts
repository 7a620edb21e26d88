import assert from "node:assert/strict";
import { test } from "node:test";
import { cidrRange, rangeKey } from "./cidr.ts";

test("an address is a range of one", () => {
  assert.deepEqual(cidrRange("10.0.0.1"), { addressPrefix: "10.0.0.1", prefixLen: 32 });
  assert.deepEqual(cidrRange("fd00::1"), { addressPrefix: "fd00::1", prefixLen: 128 });
  assert.deepEqual(cidrRange("10.0.0.0/8"), { addressPrefix: "10.0.0.0", prefixLen: 8 });
});

test("what means any address, or none, is no range", () => {
  for (const text of ["0.0.0.0/0", "0.0.0.0", "example.com", "", "10.0.0.0/99", "19216800", "10.1/16"]) {
    assert.equal(cidrRange(text), undefined, text);
    assert.equal(rangeKey(text), undefined, text);
  }
});

test("ranges of the same addresses have one key", () => {
  assert.equal(rangeKey("10.1.2.3/8"), rangeKey("10.0.0.0/8"));
  assert.equal(rangeKey("fd00:0::1/64"), rangeKey("fd00::/64"));
  assert.notEqual(rangeKey("10.0.0.0/8"), rangeKey("10.0.0.0/9"));
});
