import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { AUTO_ADDRESS_RANGE, allocateAddresses, CLUSTER_IP_RANGE, preferredClusterIp } from "./addresses.ts";

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
      const request = { range: { first: 0xf0f00000, size: 256 }, ...NOTHING };
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
  const given = allocateAddresses({ names: ["a", "b", "c", "d"], range: AUTO_ADDRESS_RANGE, taken, previous });
  assert.equal(given.get("a"), "240.240.7.7");
  for (const name of ["b", "c", "d"]) assert.match(given.get(name) ?? "", /^240\.240\./);
  assert.notEqual(given.get("b"), "240.240.8.8");
});

test("allocateAddresses() leaves names without an address when the range is used up", () => {
  const names = Array.from({ length: 300 }, (_, i) => String(i));
  assert.equal(allocateAddresses({ names, range: { first: 0x0a000000, size: 256 }, ...NOTHING }).size, 254);
});

test("preferredClusterIp() is what a lone service gets", () => {
  const name = "httpbin.default.svc.cluster.local";
  const given = allocateAddresses({ names: [name], range: CLUSTER_IP_RANGE, ...NOTHING });
  assert.equal(given.get(name), preferredClusterIp(name));
});
