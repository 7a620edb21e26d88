import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
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

  test("does not wait for a process of this machine that was killed a moment ago", async () => {
    const script = `
      import { withFolderLock } from ${JSON.stringify(join(import.meta.dirname, "folder-lock.ts"))};
      await withFolderLock(${JSON.stringify(folder)}, async () => process.kill(process.pid, "SIGKILL"));`;
    spawnSync(process.execPath, ["--input-type=module-typescript", "-e", script], { cwd: import.meta.dirname });
    assert.equal(existsSync(join(folder, LOCK_NAME)), true);
    const start = performance.now();
    assert.equal(await withFolderLock(folder, async () => 1), 1);
    assert.ok(performance.now() - start < 10_000);
  });

  test("waits for one of which nothing is known", async () => {
    const lock = join(folder, LOCK_NAME);
    const entered = async () => {
      const order: string[] = [];
      const waiting = withFolderLock(folder, async () => order.push("second"));
      await new Promise((resolve) => setTimeout(resolve, 150));
      order.push("first");
      rmSync(lock);
      await waiting;
      return order;
    };
    for (const mark of ["", "garbage", "elsewhere 1 1", "elsewhere 999999999 1"]) {
      writeFileSync(lock, mark);
      assert.deepEqual(await entered(), ["first", "second"], mark);
    }
  });

  test("says that a folder cannot be locked", async () => {
    await assert.rejects(
      withFolderLock(join(folder, "nowhere"), async () => 1),
      { code: "CA_FOLDER_UNWRITABLE" },
    );
  });
});
