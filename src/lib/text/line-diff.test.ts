import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { unifiedHunks } from "./line-diff.ts";

test("unifiedHunks() of equal texts is empty", () => {
  assert.equal(unifiedHunks(["a", "b"], ["a", "b"]), "");
  assert.equal(unifiedHunks([], []), "");
});

test("unifiedHunks() shows changes with three lines around them", () => {
  const before = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
  const after = ["1", "2", "3", "4", "five", "6", "7", "8", "9"];
  assert.equal(unifiedHunks(before, after), "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
  assert.equal(unifiedHunks([], ["a"]), "@@ -0,0 +1 @@\n+a\n");
});

test("what unifiedHunks() gives makes one text into the other", () => {
  const lines = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 30 });
  fc.assert(
    fc.property(lines, lines, (before, after) => {
      assert.deepEqual(patched(before, unifiedHunks(before, after)), after);
    }),
  );
});

/** Applies hunks, and fails where their lines are not those of the text. */
function patched(before: readonly string[], hunks: string): readonly string[] {
  const after: string[] = [];
  let at = 0;
  for (const line of hunks.split("\n").slice(0, -1)) {
    const [, first, size] = /^@@ -(\d+)(?:,(\d+))? /.exec(line) ?? [];
    if (first !== undefined) {
      const start = size === "0" ? Number(first) : Number(first) - 1;
      after.push(...before.slice(at, start));
      at = start;
      continue;
    }
    if (!line.startsWith("+")) assert.equal(before[at++], line.slice(1));
    if (!line.startsWith("-")) after.push(line.slice(1));
  }
  return [...after, ...before.slice(at)];
}

test("unifiedHunks() of large texts without a common line comes to an end", () => {
  const long = (prefix: string) => Array.from({ length: 5_000 }, (_, i) => `${prefix}${i}`);
  const text = unifiedHunks(long("a"), long("b"));
  assert.equal(text.split("\n").length, 10_002);
});
