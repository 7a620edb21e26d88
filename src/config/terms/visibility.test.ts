import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultExportTo, isPublic, isVisible } from "./visibility.ts";

const seenFrom = (namespace: string, exportTo: string[] | undefined, fallback = ["*"]) =>
  isVisible(exportTo, { home: "home", namespace, fallback });

test("what is exported to all, or to nobody in particular, is seen by all", () => {
  for (const exportTo of [["*"], [], undefined, [".", "*"]]) assert.equal(seenFrom("other", exportTo), true);
});

test("what is exported to its own namespace or to others by name is seen there only", () => {
  assert.equal(seenFrom("home", ["."]), true);
  assert.equal(seenFrom("other", ["."]), false);
  assert.equal(seenFrom("other", ["other"]), true);
  assert.equal(seenFrom("home", ["other"]), false);
});

test("what is exported to nobody is not even seen at home", () => {
  assert.equal(seenFrom("home", ["~"]), false);
});

test("the mesh decides for objects that do not say", () => {
  assert.equal(seenFrom("other", undefined, ["."]), false);
  assert.equal(isPublic(undefined, ["."]), false);
  assert.equal(isPublic(["*"], ["."]), true);
});

test("defaultExportTo() knows the own namespace and everybody, and takes the rest for nobody", () => {
  assert.deepEqual(defaultExportTo([]), ["*"]);
  assert.deepEqual(defaultExportTo(["*"]), ["*"]);
  assert.deepEqual(defaultExportTo(["*", "."]), ["."]);
  assert.deepEqual(defaultExportTo(["shop"]), ["~"]);
  assert.deepEqual(defaultExportTo(["~"]), ["~"]);
});
