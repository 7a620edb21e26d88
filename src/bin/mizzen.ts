/** `mizzen`, the person's tool. */
import { CommanderError } from "commander";
import { mizzenProgram } from "#cli/program.ts";
import { EXIT } from "#cli/terminal/exit-codes.ts";
import { runOnOwnMachine } from "#cli/terminal/rootless.ts";
import { terminalOf } from "#cli/terminal/terminal.ts";
import { ignoreMeaninglessSignals } from "#lib/command/ignore-signals.ts";

async function main(): Promise<void> {
  ignoreMeaninglessSignals();
  try {
    const terminal = terminalOf(process);
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
