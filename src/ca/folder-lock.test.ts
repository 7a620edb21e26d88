import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { LOCK_NAME, withFolderLock } from "./folder-lock.ts";

describe("withFolderLock()", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "folder-lock-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  test("lets one work at a time, and all of them in the end", async () => {
    let inside = 0;
    let most = 0;
    const work = async () => {
      most = Math.max(most, ++inside);
      await new Promise((resolve) => setTimeout(resolve, 2));
      inside--;
      return "done";
    };
    const done = await Promise.all([1, 2, 3].map(() => withFolderLock(folder, work)));
    assert.deepEqual([done, most], [["done", "done", "done"], 1]);
  });

  test("is free again after work that failed", async () => {
    await assert.rejects(
      withFolderLock(folder, () => Promise.reject(new Error("broken"))),
      /broken/,
    );
    assert.equal(existsSync(join(folder, LOCK_NAME)), false);
  });

  test("does not wait for a process that ended long ago", async () => {
    const lock = join(folder, LOCK_NAME);
    writeFileSync(lock, "");
    const longAgo = Date.now() / 1000 - 3600;
    utimesSync(lock, longAgo, longAgo);
    assert.equal(await withFolderLock(folder, async () => 1), 1);
  });

  test("says that a folder cannot be locked", async () => {
    await assert.rejects(
      withFolderLock(join(folder, "nowhere"), async () => 1),
      { code: "CA_FOLDER_UNWRITABLE" },
    );
  });
});
