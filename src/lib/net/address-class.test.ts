import assert from "node:assert/strict";
import { test } from "node:test";
import { type AddressClass, addressClass, embeddedIPv4 } from "./address-class.ts";

const CLASSES: Readonly<Record<AddressClass, readonly string[]>> = {
  local: [
    "0.0.0.0",
    "0.1.2.3",
    "127.0.0.1",
    "127.255.0.1",
    "169.254.169.254",
    "224.0.0.1",
    "255.255.255.255",
    "100.100.100.200",
    "168.63.129.16",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "ff02::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fd00:c1::a9fe:a9fe",
    "::ffff:127.0.0.1",
    "::ffff:a9fe:a9fe",
    "::ffff:0:7f00:1",
    "::169.254.169.254",
    "64:ff9b::169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b:1::169.254.169.254",
    "64:ff9b:1:a9fe:a9:fe00::",
    "2002:a9fe:a9fe::1",
    "2002:7f00:1::",
    "2001:0:808:808:0:0:5601:5601",
    "2001:0:7f00:1::",
    "100::1",
  ],
  private: [
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "240.240.0.1",
    "fc00::1",
    "fd12:3456::1",
    "fec0::1",
    "::ffff:10.0.0.1",
    "::8.8.8.8",
    "64:ff9b::8.8.8.8",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::8.8.8.8",
    "2002:808:808::1",
    "2001:0:808:808:0:0:f7f7:f7f7",
  ],
  public: ["8.8.8.8", "172.32.0.1", "100.128.0.1", "203.0.113.1", "2606:4700::1111", "2001:db8::1", "::ffff:8.8.8.8"],
};

for (const [expected, addresses] of Object.entries(CLASSES)) {
  test(`addressClass() knows ${expected} addresses in all their forms`, () => {
    assert.deepEqual(
      addresses.filter((address) => addressClass(address) !== expected),
      [],
    );
  });
}

test("embeddedIPv4() finds the addresses that packets may end up at", () => {
  assert.deepEqual(embeddedIPv4("64:ff9b::10.1.2.3"), ["10.1.2.3"]);
  assert.deepEqual(embeddedIPv4("2002:a01:203::"), ["10.1.2.3"]);
  assert.deepEqual(embeddedIPv4("2606:4700::1"), []);
  assert.deepEqual(embeddedIPv4("10.1.2.3"), []);
});
