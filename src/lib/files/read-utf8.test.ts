import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readUtf8 } from "./read-utf8.ts";

test("readUtf8() reads letters of any length, and names the line that holds something else", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "utf8-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "file");
  const read = (text: string, encoding: BufferEncoding) => {
    writeFileSync(file, text, encoding);
    return readUtf8(file);
  };
  assert.equal(read("a\né😀\uFFFD\n", "utf8"), "a\né😀\uFFFD\n");
  assert.equal(read("", "utf8"), "");
  assert.throws(() => read("\xff", "latin1"), { message: "line 1 is not UTF-8" });
  assert.throws(() => read("a\nb\nc\xc3\nd\n", "latin1"), { message: "line 3 is not UTF-8" });
  assert.throws(() => read("a\n\xc3", "latin1"), { message: "line 2 is not UTF-8" });
});
