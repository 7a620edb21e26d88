/** No group of real Istio's cases falls below what it reached before. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { belowFloor, type Floors, raisedFloors, readFloors } from "./floors.ts";
import { GROUPS } from "./groups.ts";
import { findFolder, type GroupResult, runGroup } from "./harness.ts";
import { formatFailures, formatLeftOut, formatTable } from "./report.ts";

const found = await findFolder(process.env);
const skip = "missing" in found && process.env.CI !== "true" ? found.missing : false;
const floors = await readFloors();

describe("conformance", { skip }, () => {
  for (const group of GROUPS) {
    test(group.name, async () => {
      assert.ok("folder" in found, "missing" in found ? found.missing : "");
      const result = await runGroup(group, found.folder);
      const sentence = belowFloor(result, floors);
      assert.equal(sentence, undefined, `${sentence}\n${formatFailures([result], false)}`);
    });
  }
});

test("every group has a floor, and every floor a group", () => {
  assert.deepEqual(Object.keys(floors).sort(), GROUPS.map((group) => group.name).sort());
});

function resultOf(passed: number, cases: number): GroupResult {
  return { name: "names", cases, passed, failures: [], leftOut: new Map() };
}

const FLOORS: Floors = { names: { cases: 10, passed: 8 } };

test("belowFloor() holds for the recorded number of cases only", () => {
  assert.equal(belowFloor(resultOf(7, 10), FLOORS), "names: 7 of 10 cases pass, and 8 did before");
  assert.equal(belowFloor(resultOf(8, 10), FLOORS), undefined);
  assert.equal(belowFloor(resultOf(2, 5), FLOORS), undefined);
  assert.equal(belowFloor(resultOf(0, 10), {}), undefined);
});

test("raisedFloors() never lowers a floor", () => {
  assert.deepEqual(raisedFloors(FLOORS, [resultOf(9, 10)]), { names: { cases: 10, passed: 9 } });
  assert.deepEqual(raisedFloors(FLOORS, [resultOf(3, 10)]), FLOORS);
  assert.deepEqual(raisedFloors(FLOORS, [resultOf(3, 4)]), { names: { cases: 4, passed: 3 } });
});

test("runGroup() counts passed, failed, left out, and what throws as failed", async () => {
  const result = await runGroup(
    {
      name: "group",
      cases: async () => [
        { name: "a", check: () => "passed" },
        { name: "b", check: () => ({ differs: () => "- x\n+ y" }) },
        { name: "c", check: () => ({ leftOut: "no nftables yet" }) },
        { name: "d", check: () => Promise.reject(new Error("boom")) },
      ],
    },
    "",
  );
  assert.equal(
    formatTable([result]),
    "group  cases  passed  failed  left out\ngroup      4       1       2         1\nall        4       1       2         1\n",
  );
  assert.equal(formatLeftOut([result]), "left out:\n  group: 1 x no nftables yet\n");
  assert.match(
    formatFailures([result], true),
    /^failed: group: b\n {4}- x\n {4}\+ y\nfailed: group: d\n {4}Error: boom\n/,
  );
});
