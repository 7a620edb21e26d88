/** The example of docs/reference/library.md, as it is printed there: the package is imported as others import it. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import test from "node:test";
import { meshUnavailable } from "../../support/mesh-run.ts";

const ROOT = join(import.meta.dirname, "../../..");

test("the example of the documentation runs", { skip: meshUnavailable() }, async () => {
  assert.ok(existsSync(join(ROOT, "dist/mesh.cjs")), "make build bundles the library");
  const page = readFileSync(join(ROOT, "docs/reference/library.md"), "utf8");
  const example = /```ts\n([\s\S]*?)```/.exec(page)?.[1] ?? assert.fail("no example");
  const file = join(import.meta.dirname, `.example-${process.pid}.ts`);
  await writeFile(file, example);
  try {
    const { status, stdout } = spawnSync(process.execPath, ["--test", "--test-reporter=tap", file], {
      cwd: ROOT,
      encoding: "utf8",
      env: { ...process.env, NODE_TEST_CONTEXT: undefined },
    });
    assert.equal(status, 0, stdout);
    assert.match(stdout, /^ok 1 - reviews goes on without ratings$/m);
  } finally {
    await rm(file);
  }
});
