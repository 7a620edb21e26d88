import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { applyPatch } from "../../../test/support/json-patch.ts";
import { jsonPatch } from "./json-patch.ts";

test("jsonPatch() changes only what differs", () => {
  assert.deepEqual(jsonPatch({ a: 1, b: { "c/d~": [1, 2] } }, { b: { "c/d~": [1, 3, 2] }, e: 2 }), [
    { op: "remove", path: "/a" },
    { op: "add", path: "/b/c~1d~0/1", value: 3 },
    { op: "add", path: "/e", value: 2 },
  ]);
  assert.deepEqual(jsonPatch([1], [1]), []);
});

test("jsonPatch() gives a patch that leads from one value to the other", () => {
  const value = fc.dictionary(fc.string(), fc.jsonValue());
  fc.assert(
    fc.property(value, value, (before, after) => {
      const [from, to]: [unknown, unknown] = [plain(before), plain(after)];
      assert.deepEqual(applyPatch(from, jsonPatch(from, to)), to);
    }),
  );
});

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
