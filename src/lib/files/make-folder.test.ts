import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { makeFolder } from "./make-folder.ts";

const folder = mkdtempSync(join(tmpdir(), "mizzen-folders-"));
after(() => rmSync(folder, { recursive: true }));

test("makeFolder() makes a folder and those above it, and says whether it was there", () => {
  const path = join(folder, "a/b/c");
  assert.equal(makeFolder(path, 0o700), true);
  assert.deepEqual(
    [join(folder, "a"), path].map((one) => statSync(one).mode & 0o777),
    [0o700, 0o700],
  );
  assert.equal(makeFolder(path), false);
  assert.equal(makeFolder(`${folder}/a/../d/`), true);
  symlinkSync(path, join(folder, "link"));
  assert.equal(makeFolder(join(folder, "link/e")), true);
});

for (const [path, message] of [
  ["/proc/x", 'no folder can be made in "/proc"'],
  ["/proc/x/y/z", 'no folder can be made in "/proc"'],
  ["/dev/null", /^EEXIST: file already exists, mkdir '\/dev\/null'$/],
  ["/dev/null/x", /^EEXIST: file already exists, mkdir '\/dev\/null'$/],
  ["", 'no folder can be made in "."'],
] as const) {
  test(`makeFolder() refuses ${path === "" ? "an empty path" : path}, and ends`, () =>
    assert.throws(() => makeFolder(path), { message }));
}

test("makeFolder() names the link that leads nowhere", () => {
  symlinkSync(join(folder, "missing/target"), join(folder, "nowhere"));
  assert.throws(() => makeFolder(join(folder, "nowhere/x")), { message: /file already exists, mkdir '.*\/nowhere'$/ });
});
