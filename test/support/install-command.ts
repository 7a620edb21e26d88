/** Runs the commands about clusters as `mizzen` would. */
import { Command, CommanderError } from "commander";
import { checkInjectCommand, injectorCommand } from "#cli/experimental/x-injection-commands.ts";
import { installCommand, precheckCommand, uninstallCommand, upgradeCommand } from "#cli/install/install-commands.ts";
import { kubeInjectCommand } from "#cli/kube-inject/kube-inject-command.ts";
import { manifestCommand, profileCommand } from "#cli/manifest/manifest-commands.ts";
import { tagCommand } from "#cli/tag/tag-command.ts";
import { type Ended, keptTerminal } from "./install-terminal.ts";

const COMMANDS = [
  installCommand,
  upgradeCommand,
  uninstallCommand,
  manifestCommand,
  profileCommand,
  precheckCommand,
  tagCommand,
  checkInjectCommand,
  injectorCommand,
  kubeInjectCommand,
];

/** One at a time: the exit code belongs to the process. */
export async function runInstallCommand(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<Ended> {
  const terminal = keptTerminal(env);
  const program = new Command("mizzen");
  for (const make of COMMANDS) program.addCommand(make(terminal));
  const all = (command: Command): readonly Command[] => [command, ...command.commands.flatMap(all)];
  for (const command of all(program)) {
    command.exitOverride().configureOutput({ writeErr: (text) => terminal.say(text), writeOut: terminal.print });
  }
  const before = process.exitCode;
  process.exitCode = 0;
  try {
    await program.parseAsync(args, { from: "user" });
    return terminal.ended();
  } catch (problem) {
    if (!(problem instanceof CommanderError)) throw problem;
    return { ...terminal.ended(), code: problem.exitCode === 0 ? 0 : 2 };
  } finally {
    process.exitCode = before;
  }
}
