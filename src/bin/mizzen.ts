/** `mizzen`, the person's tool. */
import { CommanderError } from "commander";
import { ignoreMeaninglessSignals } from "./ignore-signals.ts";
import { EXIT } from "./mizzen/exit-codes.ts";
import { mizzenProgram } from "./mizzen/program.ts";
import { runOnOwnMachine } from "./mizzen/rootless.ts";
import { processTerminal } from "./mizzen/terminal.ts";

async function main(): Promise<void> {
  ignoreMeaninglessSignals();
  try {
    const terminal = processTerminal();
    const program = mizzenProgram(terminal);
    program.hook("preAction", async (_, command) => {
      if (await runOnOwnMachine(terminal, command)) process.exit();
    });
    await program.parseAsync();
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    process.exitCode = error.exitCode === 0 ? 0 : EXIT.usage;
  }
}

void main();
