import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { Command } from "commander";
import { completionCommand } from "#lib/command/completion-command.ts";
import { VERSION_TEXT, versionCommand } from "#lib/command/version-command.ts";

async function output(make: (write: (text: string) => void) => Command, ...args: string[]): Promise<string> {
  let text = "";
  await make((part) => {
    text += part;
  }).parseAsync(args, { from: "user" });
  return text;
}

test("version prints the long form, the short one, YAML and JSON", async () => {
  assert.match(
    await output(versionCommand),
    /^client version: version\.BuildInfo\{Version:"1\.29\.6", Program:"mizzen"/,
  );
  assert.equal(await output(versionCommand, "--short"), `client version: ${VERSION_TEXT}\n`);
  assert.match(await output(versionCommand, "-o", "yaml"), /^clientVersion:\n {2}version: 1\.29\.6\n/);
  for (const flags of [["-o", "json"], ["-o=json"], ["--output=json"]])
    assert.equal(JSON.parse(await output(versionCommand, ...flags)).clientVersion.version, "1.29.6");
  assert.match(await output(versionCommand, "--output="), /^client version: /);
});

function program(write: (text: string) => void): Command {
  const root = new Command("some-program").option("--vklog <level>");
  root.addCommand(new Command("discovery").option("--configDir <path>").option("-n, --namespace <name>"));
  root.addCommand(new Command("look").alias("l").addCommand(new Command("at").alias("a").option("--closely")));
  root.addCommand(new Command("secret"), { hidden: true });
  return root.addCommand(completionCommand(root, write));
}

test("completion bash gives a script that completes commands and their flags", async () => {
  const script = await output(program, "completion", "bash");
  const complete = (line: string) => {
    const words = line.split(" ");
    const ask = `COMP_WORDS=(${words.map((word) => `"${word}"`).join(" ")}); COMP_CWORD=${words.length - 1}; _some_program; echo "\${COMPREPLY[@]}"`;
    return execFileSync("bash", ["-c", `${script}\n${ask}`], { encoding: "utf8" }).trim();
  };
  assert.equal(complete("some-program dis"), "discovery");
  assert.equal(complete("some-program discovery --c"), "--configDir");
  assert.equal(complete("some-program completion "), "bash fish powershell zsh --help");
  assert.equal(complete("some-program look "), "at --help");
  assert.equal(complete("some-program look at --c"), "--closely");
  assert.equal(complete("some-program l a --c"), "--closely");
  assert.equal(complete("some-program sec"), "");
});

test("completion of every shell names each command and flag", async () => {
  for (const shell of ["bash", "zsh", "fish", "powershell"]) {
    const script = await output(program, "completion", shell);
    for (const word of ["discovery", "configDir", "namespace", "vklog"])
      assert.ok(script.includes(word), `${shell}: ${word}`);
  }
});
