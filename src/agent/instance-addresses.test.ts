import assert from "node:assert/strict";
import type { NetworkInterfaceInfo } from "node:os";
import { test } from "node:test";
import { instanceAddresses } from "./instance-addresses.ts";

const info = (address: string, internal = false) => ({ address, internal }) as NetworkInterfaceInfo;
const INTERFACES = {
  lo: [info("127.0.0.1", true), info("::1", true)],
  eth0: [info("192.0.2.2"), info("fe80::1"), info("fd00::2"), info("169.254.1.1")],
  eth1: [info("198.51.100.1")],
};

test("instanceAddresses() puts the identifying address first, once, and leaves out loopback and link-local ones", () => {
  assert.deepEqual(instanceAddresses("10.0.0.1", INTERFACES, []), ["10.0.0.1", "192.0.2.2", "fd00::2", "198.51.100.1"]);
  assert.deepEqual(instanceAddresses("fd00::2", INTERFACES, []), ["fd00::2", "192.0.2.2", "198.51.100.1"]);
});

test("instanceAddresses() takes no address for link-local that only begins like one", () => {
  const eth0 = ["febf::1", "fec0::1", "fe8::1", "169.25.4.1", "169.254.0.1"].map((address) => info(address));
  assert.deepEqual(instanceAddresses("10.0.0.1", { eth0 }, []), ["10.0.0.1", "fec0::1", "fe8::1", "169.25.4.1"]);
});

test("instanceAddresses() leaves out excluded interfaces and an INSTANCE_IP that is no address", () => {
  assert.deepEqual(instanceAddresses("nonsense", INTERFACES, ["eth0"]), ["198.51.100.1"]);
  assert.deepEqual(instanceAddresses("10.0.0.1", INTERFACES, ["eth0", "eth1"]), ["10.0.0.1"]);
});

test("instanceAddresses() compares addresses in their shortest form", () => {
  assert.deepEqual(instanceAddresses("FD00:0::2", { eth0: [info("fd00::2")] }, []), ["fd00::2"]);
  assert.deepEqual(instanceAddresses("FE80::1%eth0", { eth0: [info("fd00::2")] }, []), ["fe80::1%eth0", "fd00::2"]);
});

test("instanceAddresses() falls back to loopback", () => {
  assert.deepEqual(instanceAddresses("", { lo: INTERFACES.lo }, []), ["127.0.0.1", "::1"]);
});
