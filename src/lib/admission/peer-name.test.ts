import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "./peer-name.ts";

test("peerName() is an IPv4 address, or a /64 of IPv6", () => {
  assert.equal(peerName("10.1.2.3"), "10.1.2.3");
  assert.equal(peerName("::ffff:10.1.2.3"), "10.1.2.3");
  assert.equal(peerName("fd00:1:2:3:4:5:6:7"), "fd00:1:2:3::/64");
  assert.equal(peerName("fd00:1::7"), "fd00:1:0:0::/64");
  assert.equal(peerName("fe80::1%eth0"), "fe80:0:0:0::/64");
  assert.equal(peerName("fd00::"), "fd00:0:0:0::/64");
  assert.equal(peerName("::1"), "0:0:0:0::/64");
  assert.equal(peerName(undefined), "");
});
