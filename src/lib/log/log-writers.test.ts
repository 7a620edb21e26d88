import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { test } from "node:test";
import { fileWriter, sparing, streamWriter } from "./log-writers.ts";

/** What stderr is told meanwhile. */
function listen(t: { after(fn: () => void): void }): string[] {
  const told: string[] = [];
  const { write } = process.stderr;
  process.stderr.write = (text: string | Uint8Array) => told.push(String(text)) > 0;
  t.after(() => {
    process.stderr.write = write;
  });
  return told;
}

test("fileWriter() appends lines, and throws at once for a file that cannot be had", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "log-writers-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "log");
  const write = fileWriter(path);
  write("a\n");
  write("b\n");
  assert.equal(readFileSync(path, "utf8"), "a\nb\n");
  assert.throws(() => fileWriter(join(folder, "none/log")), /ENOENT/);
});

test("a full disk and a broken writer lose lines, which is told once", (t) => {
  const told = listen(t);
  const write = fileWriter("/dev/full");
  write("a\n");
  write("b\n");
  sparing(() => {
    throw new Error("no more");
  })("c\n");
  assert.equal(told.length, 2);
  assert.match(told[0] ?? "", /^log write error: ENOSPC: .*; lines are lost\n$/);
  assert.match(told[1] ?? "", /no more/);
});

test("streamWriter() outlives a stream that fails", async (t) => {
  const told = listen(t);
  const stream = new Writable({ autoDestroy: false, write: (_, __, done) => done(new Error("nobody reads")) });
  const write = streamWriter(stream);
  streamWriter(stream);
  write("a\n");
  write("b\n");
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(told, ["log write error: nobody reads; lines are lost\n"]);
});
