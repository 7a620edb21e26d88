import assert from "node:assert/strict";
import test from "node:test";
import { formatOutput } from "./output.ts";
import { styleFor } from "./style.ts";
import { formatTable } from "./table.ts";

const PLAIN = styleFor({ isTTY: false }, {});

test("formatTable() makes columns as wide as their longest cell, not counting colours", () => {
  const { good } = styleFor({ isTTY: true }, {});
  const table = formatTable([
    ["NAME", "READY", "X"],
    ["a", good("yes"), "1"],
    ["long-name", "no", ""],
  ]);
  assert.equal(table, `NAME        READY   X\na           ${good("yes")}     1\nlong-name   no\n`);
  assert.equal(formatTable([]), "");
});

test("styleFor() colours terminals alone, and not when the person said no", () => {
  assert.equal(PLAIN.bad("x"), "x");
  assert.equal(styleFor({ isTTY: true }, { NO_COLOR: "1" }).bad("x"), "x");
  assert.equal(styleFor({ isTTY: true }, { TERM: "dumb" }).bad("x"), "x");
  assert.equal(styleFor({ isTTY: true }, {}).bad("x"), "\u001b[31mx\u001b[0m");
});

test("formatOutput() writes JSON and YAML that read back as the same value", () => {
  const value = { name: "web", ready: true, ports: [80], note: "yes" };
  assert.deepEqual(JSON.parse(formatOutput(value, "json")), value);
  assert.equal(formatOutput(value, "yaml"), "name: web\nready: true\nports:\n  - 80\nnote: 'yes'\n");
});
