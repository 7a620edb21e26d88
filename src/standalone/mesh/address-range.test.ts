import assert from "node:assert/strict";
import test from "node:test";
import { addressRange, memberAddresses, overlap, rangeProblem } from "./address-range.ts";

test("addressRange() gives the fabric the first addresses of any range", () => {
  const { gateway, controlPlane, prefixLength } = addressRange("172.20.16.0/20");
  assert.deepEqual([gateway, controlPlane, prefixLength], ["172.20.16.1", "172.20.16.2", 20]);
  assert.equal(addressRange("200.0.0.0/8").gateway, "200.0.0.1");
});

test("memberAddresses() stays inside of the range, across its bytes", () => {
  assert.deepEqual([...memberAddresses(addressRange("10.1.2.0/27"))].at(0), "10.1.2.10");
  assert.deepEqual([...memberAddresses(addressRange("10.1.2.0/27"))].at(-1), "10.1.2.30");
  assert.equal([...memberAddresses(addressRange("10.1.2.0/23"))].at(-1), "10.1.3.254");
});

test("rangeProblem() says what is wrong and what would be right", () => {
  assert.equal(rangeProblem("10.99.0.0/16"), undefined);
  for (const [cidr, expected] of [
    ["10.99.0.0", /must be a range of IPv4 addresses such as 10\.244\.0\.0\/16, not "10\.99\.0\.0"/],
    ["10.999.0.0/16", /must be a range of IPv4/],
    ["fd00::/64", /must be a range of IPv4/],
    ["10.99.0.0/28", /from \/8 to \/27/],
    ["10.99.1.0/16", /must start where the range does: "10\.99\.0\.0\/16"/],
    ["127.0.0.0/16", /must not overlap 127\.0\.0\.0\/8, which is for loopback/],
    ["198.19.0.0/16", /198\.18\.0\.0\/15, which is for the way out/],
    ["240.240.0.0/16", /service entries/],
  ] as const) {
    assert.match(rangeProblem(cidr) ?? "", expected, cidr);
  }
});

test("overlap() looks at the larger of two ranges", () => {
  assert.ok(overlap("10.244.0.0/16", "10.244.3.0/24"));
  assert.ok(overlap("10.244.3.0/24", "10.0.0.0/8"));
  assert.ok(!overlap("10.244.0.0/16", "10.245.0.0/16"));
  assert.ok(overlap("200.0.0.0/8", "200.255.0.0/16"));
  assert.ok(!overlap("10.244.0.0/16", "default"));
});
