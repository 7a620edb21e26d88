import assert from "node:assert/strict";
import test from "node:test";
import { formatMemory, parseMemory } from "./quantity.ts";

test("formatMemory() gives back what parseMemory() reads", () => {
  for (const text of ["32Mi", "1G", "4097", "1500M", "512Ki", "3Gi"])
    assert.equal(formatMemory(parseMemory(text)), text);
});

test("parseMemory() refuses what is no amount", () => {
  for (const text of ["", "0", "-1Mi", "1 Mi", "1mi", "Mi", "1e3"]) assert.equal(parseMemory(text), undefined, text);
});
