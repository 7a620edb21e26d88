import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { rotatingFile } from "./log-file.ts";

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "log-file-"));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

test("rotatingFile() starts a new file when the old one is full, and keeps the newest of the old ones", (t) => {
  const at = folder(t);
  writeFileSync(join(at, "agent-notes.log"), "not ours");
  let second = 0;
  const now = () => new Date(Date.UTC(2026, 0, 1, 0, 0, second++));
  const write = rotatingFile(join(at, "agent.log"), { maxBytes: 10, maxAgeMs: 0, maxBackups: 1 }, now);
  for (const line of ["12345\n", "678\n", "next\n", "and more\n"]) write(line);
  assert.equal(readFileSync(join(at, "agent.log"), "utf8"), "and more\n");
  const backups = readdirSync(at).filter((name) => name.startsWith("agent-2026"));
  assert.equal(backups.length, 1);
  assert.equal(readFileSync(join(at, backups[0] ?? ""), "utf8"), "next\n");
  assert.ok(readdirSync(at).includes("agent-notes.log"));
});

test("rotatingFile() removes what is too old, and without limits nothing", (t) => {
  const at = folder(t);
  const old = join(at, "a-2020-01-01T00-00-00.000.log");
  writeFileSync(old, "old");
  rotatingFile(join(at, "a.log"), { maxBytes: 0, maxAgeMs: 1, maxBackups: 1 })("x".repeat(100));
  assert.deepEqual(readdirSync(at).length, 2);
  const write = rotatingFile(join(at, "a.log"), { maxBytes: 1, maxAgeMs: 86_400_000, maxBackups: 0 });
  write("y");
  assert.ok(!readdirSync(at).includes("a-2020-01-01T00-00-00.000.log"));
});

test("rotatingFile() makes the folder of its file", (t) => {
  const path = join(folder(t), "new", "logs", "a.log");
  rotatingFile(path, { maxBytes: 0, maxAgeMs: 0, maxBackups: 0 })("x\n");
  assert.equal(readFileSync(path, "utf8"), "x\n");
});

test("rotatingFile() refuses a file that cannot be written", () => {
  assert.throws(() => rotatingFile("/dev/null/x.log", { maxBytes: 1, maxAgeMs: 0, maxBackups: 0 }), /ENOTDIR|EEXIST/);
});
