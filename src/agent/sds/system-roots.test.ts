import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import { hashedRootsFolder } from "./system-roots.ts";

test("hashedRootsFolder() takes the first folder in which certificates are found by their hash", (t) => {
  const [missing, plain, hashed, other] = ["missing", "plain", "hashed", "other"].map((name) =>
    join(temporaryFolder(t), name),
  ) as [string, string, string, string];
  for (const folder of [plain, hashed, other]) mkdirSync(folder);
  writeFileSync(join(plain, "ca-bundle.crt"), "");
  for (const folder of [hashed, other]) writeFileSync(join(folder, "062cdee6.0"), "");
  assert.equal(hashedRootsFolder([missing, plain, hashed, other]), hashed);
  assert.equal(hashedRootsFolder([missing, plain]), undefined);
});
