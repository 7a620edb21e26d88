import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { VERSION } from "./version.ts";

test("VERSION is the one of package.json", () => {
  const file = new URL("../../package.json", import.meta.url);
  assert.equal(JSON.parse(readFileSync(file, "utf8")).version, VERSION);
});
