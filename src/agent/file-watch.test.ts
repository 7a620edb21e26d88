import assert from "node:assert/strict";
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { eventually, temporaryFolder } from "../../test/support/fake-control-plane.ts";
import { watchFiles } from "./file-watch.ts";

/** A watch on a file, what it has told, and how to end it. */
function watchOf(t: TestContext, ...files: string[]) {
  const told = { changes: 0 };
  const unwatch = watchFiles(files, {
    debounceMs: 50,
    onChange: () => told.changes++,
    onFailure: (thrown) => assert.fail(String(thrown)),
  });
  t.after(unwatch);
  return { told, unwatch, change: () => eventually("the change", () => told.changes > 0) };
}

test("watchFiles() reports a replaced file, and nothing after the end", async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, "envoy");
  writeFileSync(file, "1");
  const first = watchOf(t, file, join(folder, "none/x"));
  writeFileSync(`${file}.new`, "2");
  renameSync(`${file}.new`, file);
  await first.change();
  first.unwatch();
  const before = first.told.changes;
  const second = watchOf(t, file);
  writeFileSync(file, "3");
  await second.change();
  assert.equal(first.told.changes, before);
});

test("watchFiles() reports nothing of other files in the folder, and a change between theirs", async (t) => {
  const folder = temporaryFolder(t);
  const [file, other] = [join(folder, "override.yaml"), join(folder, "agent.log")];
  writeFileSync(file, "1");
  const watch = watchOf(t, file);
  const beside = watchOf(t, other);
  const busy = setInterval(() => writeFileSync(other, String(Date.now())), 10);
  t.after(() => clearInterval(busy));
  await beside.change();
  assert.equal(watch.told.changes, 0);
  writeFileSync(file, "2");
  await watch.change();
});

test("watchFiles() reports a file that is reached by a link when the link leads elsewhere", async (t) => {
  const folder = temporaryFolder(t);
  for (const version of ["v1", "v2"]) {
    mkdirSync(join(folder, version));
    writeFileSync(join(folder, version, "envoy"), version);
  }
  symlinkSync("v1", join(folder, "current"));
  const watch = watchOf(t, join(folder, "current/envoy"));
  symlinkSync("v2", join(folder, "current.new"));
  renameSync(join(folder, "current.new"), join(folder, "current"));
  await watch.change();
});
