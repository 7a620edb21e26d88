import assert from "node:assert/strict";
import { test } from "node:test";
import { addressAt, offsetIn, parseAddressRange } from "./address-range.ts";

test("parseAddressRange() reaches from the address to the end of its network", () => {
  assert.deepEqual(parseAddressRange("10.0.0.250/24"), { family: 4, first: 0x0a0000fan, size: 6n });
  assert.deepEqual(parseAddressRange("2001:2::/48"), { family: 6, first: 0x2001_0002n << 96n, size: 2n ** 80n });
  assert.equal(parseAddressRange("0.0.0.0/0")?.size, 2n ** 32n);
});

test("parseAddressRange() refuses what is no range", () => {
  for (const text of [
    "",
    "10.0.0.0",
    "10.0.0.0/33",
    "10.0.0/8",
    "::/129",
    "::1/x",
    "10.0.0.0/-1",
    "10.0.0.0/08",
    "a/8",
  ]) {
    assert.equal(parseAddressRange(text), undefined, text);
  }
});

test("addressAt() and offsetIn() are a round trip, and know the ends", () => {
  for (const text of ["10.0.0.0/24", "fd00::/64"]) {
    const range = parseAddressRange(text);
    assert.ok(range);
    assert.equal(offsetIn(range, addressAt(range, 77n) ?? ""), 77n);
    assert.equal(addressAt(range, range.size), undefined);
    assert.equal(addressAt(range, -1n), undefined);
  }
  const range = parseAddressRange("10.0.0.0/24");
  assert.ok(range);
  for (const address of ["10.0.1.0", "9.255.255.255", "::1", "x", ""])
    assert.equal(offsetIn(range, address), undefined);
});
