/** `mizzen x`: commands that explain, under istioctl's name for them. */
import { Command } from "commander";
import { precheckCommand } from "./install-commands.ts";
import type { Terminal } from "./terminal.ts";
import { authzCommand } from "./x-authz-command.ts";
import { checkInjectCommand, injectorCommand } from "./x-injection-commands.ts";
import { mtlsCommand } from "./x-mtls-command.ts";

export function xCommand(terminal: Terminal): Command {
  const group = new Command("x")
    .alias("experimental")
    .summary("explain what configuration does")
    .description(
      "Commands that explain what the configuration of a mesh does, from its files, of a mesh that is up, or in a cluster.",
    );
  const commands = [authzCommand, mtlsCommand, precheckCommand, checkInjectCommand, injectorCommand];
  for (const make of commands) group.addCommand(make(terminal));
  for (const command of below(group)) command.exitOverride().showHelpAfterError("(see --help)");
  return group;
}

/** Commands do not take over from their group how they end. */
function below(command: Command): readonly Command[] {
  return command.commands.flatMap((one) => [one, ...below(one)]);
}
