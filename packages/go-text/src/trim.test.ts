import assert from "node:assert/strict";
import { test } from "node:test";
import { withoutEnds, withoutLeading, withoutTrailing } from "./trim.ts";

test("letters are removed at the ends, not inside", () => {
  assert.equal(withoutLeading("//a/b//", "/"), "a/b//");
  assert.equal(withoutTrailing("//a/b//", "/"), "//a/b");
  assert.equal(withoutEnds("[[a]b]", "[]"), "a]b");
  for (const trim of [withoutLeading, withoutTrailing, withoutEnds]) {
    assert.equal(trim("////", "/"), "");
    assert.equal(trim("", "/"), "");
  }
});
