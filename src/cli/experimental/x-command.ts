/** `mizzen x`: commands that explain, under istioctl's name for them. */
import { Command } from "commander";
import { precheckCommand } from "../install/install-commands.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { authzCommand } from "./x-authz-command.ts";
import { checkInjectCommand, injectorCommand } from "./x-injection-commands.ts";
import { mtlsCommand } from "./x-mtls-command.ts";

const HELP = `
Examples:
  mizzen x authz explain --from foo/sleep --to httpbin.foo:8000 -f samples/httpbin    may this request pass, and why
  mizzen x mtls -f samples/bookinfo                                                   who speaks mutual TLS to whom
  mizzen x precheck                                                                   can the mesh be installed
  mizzen x check-inject deployment/web -n shop                                        is this pod injected, and why`;

export function xCommand(terminal: Terminal): Command {
  const group = new Command("x")
    .alias("experimental")
    .summary("explain what configuration does")
    .description(
      "Commands that explain what the configuration of a mesh does, from its files, of a mesh that is up, or in a cluster.",
    )
    .addHelpText("after", HELP);
  const commands = [authzCommand, mtlsCommand, precheckCommand, checkInjectCommand, injectorCommand];
  for (const make of commands) group.addCommand(make(terminal));
  return group;
}
