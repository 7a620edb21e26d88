import assert from "node:assert/strict";
import test from "node:test";
import { suggestedCommand } from "./suggested-commands.ts";

const ALONE = { mizzen: "bin/mizzen", folder: "samples/shop", choice: "" };
const AMONG = { ...ALONE, choice: "--mesh shop" };

test("suggestedCommand() names the program and the folder, and of several meshes the one that is meant", () => {
  const run = "{mizzen} apply {folder}/strict.yaml && {mizzen} run --no-inject -- curl http://web/";
  assert.equal(
    suggestedCommand(run, ALONE),
    "bin/mizzen apply samples/shop/strict.yaml && bin/mizzen run --no-inject -- curl http://web/",
  );
  assert.equal(
    suggestedCommand(run, AMONG),
    "bin/mizzen apply --mesh shop samples/shop/strict.yaml && bin/mizzen run --mesh shop --no-inject -- curl http://web/",
  );
});

test("suggestedCommand() gives the choice to the command whose option it is", () => {
  assert.equal(suggestedCommand("{mizzen} pc listener web", AMONG), "bin/mizzen pc listener --mesh shop web");
  assert.equal(suggestedCommand("{mizzen} x authz check web", AMONG), "bin/mizzen x authz check --mesh shop web");
  assert.equal(suggestedCommand("{mizzen}", AMONG), "bin/mizzen");
});
