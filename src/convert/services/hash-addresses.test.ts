import assert from "node:assert/strict";
import { test } from "node:test";
import { hashAddresses } from "./hash-addresses.ts";

test("the address of a host is the number of the slot that its hash names", () => {
  const [a, b] = ["default/a.com", "default/b.com"].map((key) => hashAddresses([key]).get(key)?.autoAddress);
  assert.match(a ?? "", /^240\.240\.\d+\.\d+$/);
  assert.notEqual(a, b);
  assert.equal(hashAddresses(["default/a.com", "default/b.com"]).get("default/a.com")?.autoAddress, a);
});

test("hosts that share a slot, and thousands of them, have addresses of their own", () => {
  const keys = Array.from({ length: 20_000 }, (_, i) => `default/host-${i}.com`);
  const found = hashAddresses(keys);
  const addresses = new Set([...found.values()].map(({ autoAddress }) => autoAddress));
  assert.equal(found.size, keys.length);
  assert.equal(addresses.size, keys.length);
  for (const address of addresses) assert.doesNotMatch(address ?? "", /\.(0|255)$/);
});

test("a host that is there twice has one address", () => {
  const found = hashAddresses(["default/a.com", "default/a.com"]);
  assert.equal(found.size, 1);
});
