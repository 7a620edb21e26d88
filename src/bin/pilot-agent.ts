/** The agent's program. What a command does is loaded when it runs, so that the small ones start fast. */
import { Command } from "commander";
import { addLogFlags } from "./agent/log-flags.ts";
import { proxyCommand } from "./agent/proxy-command.ts";
import { requestCommand } from "./agent/request-command.ts";
import { openSocketsCommand, serveCommand } from "./agent/serve-command.ts";
import { goSwitches } from "./agent/switches.ts";
import { waitCommand } from "./agent/wait-command.ts";
import { completionCommand } from "./completion-command.ts";
import { istioCleanIptablesCommand, istioIptablesCommand } from "./istio-iptables.ts";
import { versionCommand } from "./version-command.ts";

/** How this program is run. */
const SELF = [process.execPath, ...process.execArgv, ...process.argv.slice(1, 2)];

const program = addLogFlags(new Command("pilot-agent"))
  .description("Runs beside a workload or gateway: starts Envoy and serves it certificates, configuration and names.")
  .addCommand(proxyCommand(process.env))
  .addCommand(serveCommand(SELF))
  .addCommand(openSocketsCommand(), { hidden: true })
  .addCommand(istioIptablesCommand(process.env))
  .addCommand(istioCleanIptablesCommand(process.env))
  .addCommand(requestCommand())
  .addCommand(waitCommand())
  .addCommand(versionCommand());
program.addCommand(completionCommand(program));

program.parseAsync(goSwitches(process.argv.slice(2)), { from: "user" }).catch((error: unknown) => {
  // A bug: let it be seen with its stack.
  console.error(error);
  process.exit(1);
});
