import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Commands } from "./commands.ts";
import { Memory } from "./memory.ts";

function namespace(link: string): Commands {
  return { run: () => Promise.resolve({ code: 0, stdout: link, stderr: "" }) };
}

const ONE = namespace("net:[4026532001]\n");
const OTHER = namespace("net:[4026532002]\n");

test("Memory keeps interfaces per network namespace and leaves no file when there are none", async () => {
  const folder = await mkdtemp(join(tmpdir(), "memory-"));
  try {
    await (await Memory.open(ONE, folder)).remember(["tap0", "tap1"]);
    assert.deepEqual(await (await Memory.open(ONE, folder)).recall(), ["tap0", "tap1"]);
    assert.deepEqual(await (await Memory.open(OTHER, folder)).recall(), []);
    await (await Memory.open(ONE, folder)).remember([]);
    assert.deepEqual(await readdir(folder), []);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("Memory does without a place to write and without a namespace to name", async () => {
  const folder = await mkdtemp(join(tmpdir(), "memory-"));
  try {
    await writeFile(join(folder, "file"), "");
    const memory = await Memory.open(ONE, join(folder, "file"));
    await memory.remember(["tap0"]);
    assert.deepEqual(await memory.recall(), []);
    const nameless = await Memory.open(namespace(""), folder);
    await nameless.remember(["tap0"]);
    assert.deepEqual(await nameless.recall(), []);
  } finally {
    await rm(folder, { recursive: true });
  }
});
