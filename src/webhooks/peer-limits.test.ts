import assert from "node:assert/strict";
import { test } from "node:test";
import { PeerLimits } from "./peer-limits.ts";

const MIB = 1024 * 1024;

test("an address has a share of its own", () => {
  const limits = new PeerLimits();
  for (let i = 0; i < 128; i++) assert.ok(limits.connect("10.0.0.1"));
  assert.equal(limits.connect("10.0.0.1"), false);
  assert.ok(limits.connect("10.0.0.2"));
  limits.disconnect("10.0.0.1");
  assert.ok(limits.connect("10.0.0.1"));
});

test("bytes count while they are kept, by address and altogether", () => {
  const limits = new PeerLimits();
  assert.ok(limits.keep("10.0.0.1", 12 * MIB));
  assert.equal(limits.keep("10.0.0.1", 1), false);
  assert.ok(limits.keep("10.0.0.2", 12 * MIB));
  assert.ok(limits.keep("10.0.0.3", 12 * MIB));
  assert.equal(limits.keep("10.0.0.4", 1), false);
  limits.release("10.0.0.1", 12 * MIB);
  assert.ok(limits.keep("10.0.0.4", 1));
});
