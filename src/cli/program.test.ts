import assert from "node:assert/strict";
import { test } from "node:test";
import { type Command, CommanderError } from "commander";
import { keptTerminal } from "../../test/support/install-terminal.ts";
import { mizzenProgram } from "./program.ts";

const TAKES_ALL_FLAGS = ["exec", "run"];

function named(command: Command, before = ""): readonly (readonly [string, Command])[] {
  const name = `${before} ${command.name()}`.trim();
  const below = command.createHelp().visibleCommands(command);
  return [[name, command], ...below.filter((one) => one.name() !== "help").flatMap((one) => named(one, name))];
}

for (const [name, command] of named(mizzenProgram(keptTerminal({})))) {
  test(`${name} --help has examples`, () => {
    let text = "";
    command.configureOutput({
      writeOut: (part) => {
        text += part;
      },
    });
    command.outputHelp();
    assert.match(text, /^Examples?:\n {2}\S/m);
  });

  test(`${name} refuses a wrong command line, and points to its help`, () => {
    if (TAKES_ALL_FLAGS.includes(command.name())) return;
    let told = "";
    command.configureOutput({
      writeErr: (part) => {
        told += part;
      },
    });
    assert.throws(() => command.parse(["--nosuch"], { from: "user" }), CommanderError);
    assert.match(told, /^error: .*\n\(see --help\)/);
  });
}
