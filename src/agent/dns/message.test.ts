import assert from "node:assert/strict";
import { test } from "node:test";
import { addressRecord } from "./message.ts";

test("addressRecord() writes IPv6 addresses of every form", () => {
  const data = (address: string) => addressRecord(address).subarray(-16).toString("hex");
  assert.equal(data("::"), "0".repeat(32));
  assert.equal(data("2001:db8:0:0:0:ff00:42:8329"), "20010db8000000000000ff0000428329");
  assert.equal(data("2001:db8::ff00:42:8329"), "20010db8000000000000ff0000428329");
  assert.equal(data("fe80::1%eth0"), "fe800000000000000000000000000001");
  assert.equal(data("::ffff:192.0.2.1"), "00000000000000000000ffffc0000201");
});
