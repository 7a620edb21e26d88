/** The agent's program. What a command does is loaded when it runs, so that the small ones start fast. */
import { Command, CommanderError } from "commander";
import { createLogger, type Logger } from "#lib/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { collateralCommand } from "./agent/collateral-command.ts";
import { addLogFlags, loggerOf } from "./agent/log-flags.ts";
import { proxyCommand } from "./agent/proxy-command.ts";
import { requestCommand } from "./agent/request-command.ts";
import { openSocketsCommand, serveCommand } from "./agent/serve-command.ts";
import { goSwitches } from "./agent/switches.ts";
import { waitCommand } from "./agent/wait-command.ts";
import { cobraMessage, inCobraStyle } from "./cobra-style.ts";
import { completionCommand } from "./completion-command.ts";
import { istioCleanIptablesCommand, istioIptablesCommand } from "./istio-iptables.ts";
import { versionCommand } from "./version-command.ts";

/** What Istio's agent ends with when a command fails. */
const FAILED = 255;

/** How this program is run. */
const SELF = [process.execPath, ...process.execArgv, ...process.argv.slice(1, 2)];

const program = addLogFlags(new Command("pilot-agent"))
  .summary("Istio Pilot agent.")
  .description("Istio Pilot agent runs in the sidecar or gateway container and bootstraps Envoy.")
  .allowUnknownOption();

/** By name, in the order of the help text. */
const COMMANDS: Readonly<Record<string, () => Command>> = {
  proxy: () => proxyCommand(process.env),
  serve: () => serveCommand(SELF),
  "open-sockets": openSocketsCommand,
  "istio-iptables": () => istioIptablesCommand(process.env),
  "istio-clean-iptables": () => istioCleanIptablesCommand(process.env),
  request: requestCommand,
  wait: waitCommand,
  version: versionCommand,
  completion: () => completionCommand(program),
  collateral: () => collateralCommand(program),
};
const HIDDEN: ReadonlySet<string> = new Set(["open-sockets", "collateral"]);
/** What an agent is started by: it needs no other, and whoever starts it waits. */
const ALONE: ReadonlySet<string | undefined> = new Set(["proxy", "version"]);

for (const [name, command] of Object.entries(COMMANDS))
  if (!ALONE.has(process.argv[2]) || name === process.argv[2])
    program.addCommand(command(), { hidden: HIDDEN.has(name) });
inCobraStyle(program);

/** The command that runs, whose failure is told. */
let active: Command = program;
program.hook("preAction", (_, command) => {
  active = command;
});

run().catch((error: unknown) => {
  if (error instanceof CommanderError && error.exitCode === 0) return;
  const text = error instanceof CommanderError ? cobraMessage(error, program.name()) : errorText(error);
  if (error instanceof MeshError || error instanceof CommanderError) process.stderr.write(`Error: ${text}\n`);
  else console.error(error); // A bug: let it be seen with its stack.
  loggerOfFailure().error(text.split("\n", 1)[0] ?? text);
  process.exit(FAILED);
});

/** As the flags of the command say, as far as it came to be known and they can be followed. */
function loggerOfFailure(): Logger {
  try {
    return loggerOf(active);
  } catch {
    return createLogger({ write: (line) => void process.stdout.write(line) });
  }
}

async function run(): Promise<void> {
  await program.parseAsync(goSwitches(process.argv.slice(2)), { from: "user" });
}
