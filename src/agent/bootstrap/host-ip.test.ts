import assert from "node:assert/strict";
import { test } from "node:test";
import { withHostIp } from "./host-ip.ts";

test("withHostIp() puts an IPv6 address in brackets, unless it is in some", () => {
  assert.equal(
    withHostIp("a: $(HOST_IP):8126\nb: [$(HOST_IP)]:8126", "fd00::9"),
    "a: [fd00::9]:8126\nb: [fd00::9]:8126",
  );
});

test("withHostIp() leaves the brackets of a list around an IPv4 address", () => {
  assert.equal(
    withHostIp("hosts: [$(HOST_IP)]\na: $(HOST_IP):8126", "10.9.9.9"),
    "hosts: [10.9.9.9]\na: 10.9.9.9:8126",
  );
});
