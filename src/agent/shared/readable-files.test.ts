import assert from "node:assert/strict";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import { isForWorkload } from "./readable-files.ts";

test("isForWorkload() accepts own and public files, and rejects a neighbour's, also by a link", async (t) => {
  const root = temporaryFolder(t);
  chmodSync(root, 0o755);
  const [own, neighbour] = [join(root, "own"), join(root, "own-neighbour")];
  for (const folder of [own, neighbour]) {
    mkdirSync(folder);
    chmodSync(folder, 0o755);
    writeFileSync(join(folder, "key.pem"), "key", { mode: 0o600 });
  }
  const closed = join(root, "closed");
  mkdirSync(closed);
  writeFileSync(join(closed, "key.pem"), "key", { mode: 0o644 });
  chmodSync(closed, 0o700);
  symlinkSync(join(neighbour, "key.pem"), join(own, "link.pem"));
  const of = async (...path: readonly string[]) => {
    await using file = await open(join(...path));
    return await isForWorkload(own, file);
  };
  assert.equal(await of(own, "key.pem"), true);
  assert.equal(await of(neighbour, "key.pem"), false);
  assert.equal(await of(own, "link.pem"), false);
  assert.equal(await of(closed, "key.pem"), false, "nobody else can enter its folder");
  chmodSync(closed, 0o711);
  assert.equal(await of(closed, "key.pem"), true);
});
