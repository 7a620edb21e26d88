import assert from "node:assert/strict";
import { test } from "node:test";
import { omitting } from "./omitting-layer.ts";

const layer = new Map(["a", "b", "c"].map((name) => [name, { name, version: "1" }]));

test("omitting() leaves names out, and only these", () => {
  const without = omitting(layer, new Set(["b", "x"]));
  assert.deepEqual([...without.keys()], ["a", "c"]);
  assert.deepEqual([without.get("a")?.name, without.get("b")], ["a", undefined]);
});

test("omitting() gives the same layer for the same names, so that nothing seems to have changed", () => {
  assert.equal(omitting(layer, new Set(["b", "a"])), omitting(layer, new Set(["a", "b"])));
  assert.notEqual(omitting(layer, new Set(["a"])), omitting(layer, new Set(["b"])));
  assert.equal(omitting(layer, new Set()), layer);
});
