import assert from "node:assert/strict";
import { test } from "node:test";
import { usesNativeSidecars } from "./native-sidecars.ts";

const node = (name: string, kubeletVersion: string) => ({ name, kubeletVersion });
const MIXED = [node("new", "v1.33.1"), node("old", "v1.32.9")];

test("usesNativeSidecars() follows the mode, whatever the nodes", () => {
  assert.equal(usesNativeSidecars("true", MIXED, "old"), true);
  assert.equal(usesNativeSidecars("false", [node("new", "v1.34.0")], "new"), false);
});

test("usesNativeSidecars() by itself asks the node of the pod, or all of them", () => {
  assert.deepEqual(
    ["new", "old", "gone", undefined].map((name) => usesNativeSidecars("auto", MIXED, name)),
    [true, false, false, false],
  );
  assert.equal(usesNativeSidecars("auto", [node("new", "1.34.0-eks-1")], undefined), true);
  assert.equal(usesNativeSidecars("auto", [], undefined), true, "as Istio: no node is too old");
  assert.equal(usesNativeSidecars("auto", [node("odd", "unknown")], undefined), false);
  assert.equal(usesNativeSidecars("auto", undefined, undefined), false, "no cluster, nothing known");
});
