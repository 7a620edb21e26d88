import assert from "node:assert/strict";
import test from "node:test";
import { addressRange } from "../mesh/address-range.ts";
import { ownAccount } from "../plan/users.ts";
import { freeUsers, idsOf, rangesOf } from "./users.ts";

test("freeUsers() gives a mesh the same range each time, above all others", () => {
  const search = { id: "abc123", accounts: "all", taken: [] } as const;
  const range = freeUsers(search);
  assert.deepEqual(freeUsers(search), range);
  assert.ok(range !== undefined && range.first >= 2_000_000_000 && range.first + range.count < 2 ** 31);
  assert.notDeepEqual(freeUsers({ ...search, id: "abc124" }), range);
});

test("freeUsers() goes past the ids of accounts, subordinate ranges and other meshes", () => {
  const search = { id: "abc123", accounts: "all", taken: [] } as const;
  const range = freeUsers(search);
  assert.ok(range);
  for (const taken of [
    idsOf(`root:x:0:0::/:\nann:x:${range.first + 7}:100::/:`),
    rangesOf(`ann:${range.first + range.count - 1}:65536\nbob:oops`),
    rangesOf(`ann:${range.first - 1}:2`),
    [range],
  ]) {
    assert.notDeepEqual(freeUsers({ ...search, taken }), range);
  }
  assert.deepEqual(freeUsers({ ...search, taken: [...idsOf("root:x:0:0"), ...rangesOf("ann:100000:65536")] }), range);
});

test("freeUsers() stays within the ids of an account that is not root, and says when none are left", () => {
  const search = { id: "abc123", accounts: "many", taken: [] } as const;
  const range = freeUsers(search);
  assert.ok(range !== undefined && range.first > 1337 && range.first + range.count <= 65_534);
  assert.throws(() => freeUsers({ ...search, taken: [{ first: 1, count: 65_536 }] }), { code: "USERS_USED_UP" });
  assert.equal(freeUsers({ ...search, accounts: "one" }), undefined);
});

test("ownAccount() gives each address an id of its own, and never one beyond the range", () => {
  const range = addressRange("10.244.0.0/16");
  const users = { first: 2_000_000_000, count: 300 };
  const uidOf = (address: string) => ownAccount(users, range, address).uid;
  assert.equal(uidOf("10.244.0.2"), 2_000_000_002);
  assert.equal(uidOf("10.244.1.10"), 2_000_000_266);
  assert.throws(() => uidOf("10.244.2.1"), { code: "USERS_USED_UP" });
  assert.equal(ownAccount(undefined, range, "10.244.0.10").uid, 65_534);
});
