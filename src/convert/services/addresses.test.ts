import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DEFAULT_FEATURES } from "#model/features.ts";
import { allocateAddresses, autoRanges, CLUSTER_IP_RANGE, pairedIpv6 } from "./addresses.ts";

const AUTO = autoRanges(DEFAULT_FEATURES);
const NOTHING = { taken: new Set<string>(), previous: new Map<string, string>() };

test("allocateAddresses() gives every name an address of its own inside the range", () => {
  const names = Array.from({ length: 5000 }, (_, i) => `svc-${i}.default.svc.cluster.local`);
  const addresses = [...allocateAddresses({ names, range: CLUSTER_IP_RANGE, ...NOTHING }).values()];
  assert.equal(new Set(addresses).size, names.length);
  for (const address of addresses)
    assert.match(address, /^10\.(9[6-9]|10\d|11[01])\.\d+\.([1-9]|[1-9]\d|1\d\d|2[0-4]\d|25[0-4])$/);
});

test("allocateAddresses() does not depend on the order of the names", () => {
  const names = fc.uniqueArray(fc.string(), { maxLength: 50 });
  fc.assert(
    fc.property(names, (given) => {
      const request = { range: { ...AUTO.v4, size: 256n }, ...NOTHING };
      const there = allocateAddresses({ names: given, ...request });
      const back = allocateAddresses({ names: given.toReversed(), ...request });
      assert.deepEqual(new Map([...there].sort()), new Map([...back].sort()));
    }),
  );
});

test("allocateAddresses() keeps what a name had, and nothing that is taken or outside the range", () => {
  const previous = new Map([
    ["a", "240.240.7.7"],
    ["b", "240.240.8.8"],
    ["c", "1.2.3.4"],
    ["d", ""],
  ]);
  const taken = new Set(["240.240.8.8"]);
  const given = allocateAddresses({ names: ["a", "b", "c", "d"], range: AUTO.v4, taken, previous });
  assert.equal(given.get("a"), "240.240.7.7");
  for (const name of ["b", "c", "d"]) assert.match(given.get(name) ?? "", /^240\.240\./);
  assert.notEqual(given.get("b"), "240.240.8.8");
});

test("allocateAddresses() leaves names without an address when the range is used up", () => {
  const names = Array.from({ length: 300 }, (_, i) => String(i));
  assert.equal(allocateAddresses({ names, range: { ...AUTO.v4, size: 256n }, ...NOTHING }).size, 254);
});

test("allocateAddresses() uses small ranges up, but for their first and last address", () => {
  const names = ["a", "b", "c", "d", "e", "f", "g"];
  const given = (bits: number) => {
    const range = autoRanges({ ...DEFAULT_FEATURES, autoRange4: `10.1.2.0/${bits}` }).v4;
    return [...allocateAddresses({ names, range, ...NOTHING }).values()].sort();
  };
  assert.deepEqual(given(29), ["10.1.2.1", "10.1.2.2", "10.1.2.3", "10.1.2.4", "10.1.2.5", "10.1.2.6"]);
  assert.deepEqual(given(31), ["10.1.2.1"]);
  assert.deepEqual(given(32), []);
});

test("pairedIpv6() has the number of the IPv4 address, or its place where there is no room", () => {
  assert.equal(pairedIpv6("240.240.1.2", AUTO), "2001:2::f0f0:102");
  const narrow = { autoRange4: "240.240.0.0/16", autoRange6: "fd00::/120" };
  assert.equal(pairedIpv6("240.240.0.200", autoRanges(narrow)), "fd00::c8");
  assert.equal(pairedIpv6("240.240.1.2", autoRanges(narrow)), undefined);
});
