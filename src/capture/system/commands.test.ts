import assert from "node:assert/strict";
import { test } from "node:test";
import { recordedCommands, systemCommands } from "./commands.ts";

const commands = systemCommands({ env: process.env });

test("systemCommands() hands input to a program and gives back what it prints", async () => {
  assert.deepEqual(await commands.run("cat", [], "rules\n"), { code: 0, stdout: "rules\n", stderr: "" });
});

test("systemCommands() tells the exit code and the complaint", async () => {
  const result = await commands.run("sh", ["-c", "echo bad >&2; exit 4"], "a program that never reads its input");
  assert.deepEqual(result, { code: 4, stdout: "", stderr: "bad" });
});

test("systemCommands() answers 127 for a program that is not there", async () => {
  assert.equal((await commands.run("no-such-program-anywhere", [])).code, 127);
});

test("recordedCommands() writes down commands, and input where there is some", async () => {
  const recorded = recordedCommands();
  await recorded.run("iptables-save", []);
  await recorded.run("iptables-restore", ["--noflush"], "* nat\nCOMMIT\n");
  assert.deepEqual(recorded.lines, ["iptables-save", "* nat", "COMMIT"]);
});
