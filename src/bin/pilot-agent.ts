/** The agent's program. A command is loaded when it runs, or is to be shown: whoever starts an agent waits for it. */
import { Command, CommanderError } from "commander";
import { MACHINE_TRUST } from "#agent/agent-environment.ts";
import { addLogFlags, loggerOf } from "#agent/command/log-flags.ts";
import { commandFirst, goSwitches } from "#agent/command/switches.ts";
import { hashedRootsFolder, systemRootsFile } from "#agent/sds/system-roots.ts";
import { cobraMessage, inCobraStyle } from "#lib/command/cobra-style.ts";
import { ignoreMeaninglessSignals } from "#lib/command/ignore-signals.ts";
import { ignoreLostReaders } from "#lib/command/lost-readers.ts";
import { readEnvironment } from "#lib/env/env-table.ts";
import { createLogger, type Logger } from "#lib/log/log.ts";
import { streamWriter } from "#lib/log/log-writers.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";

/** What Istio's agent ends with when a command fails. */
const FAILED = 255;

/** Asked about a command that there is not: the help of the program was shown. */
const HELP_ELSEWHERE = "commander.help";

/** How this program is run. */
const SELF = [process.execPath, ...process.execArgv, ...process.argv.slice(1, 2)];

const program = addLogFlags(new Command("pilot-agent"))
  .summary("Istio Pilot agent.")
  .description("Istio Pilot agent runs in the sidecar or gateway container and bootstraps Envoy.")
  .allowUnknownOption();

/** As it was before this program added to it what only its own libraries need: Envoy finds roots by itself. */
const GIVEN_ENVIRONMENT = { ...process.env };
const CAPTURE = { env: GIVEN_ENVIRONMENT, commandLine: [...SELF, ...process.argv.slice(2)] };

/** By name, in the order of the help text. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  proxy: async () => (await import("#agent/command/proxy-command.ts")).proxyCommand(GIVEN_ENVIRONMENT),
  serve: async () => (await import("#agent/command/serve-command.ts")).serveCommand(SELF),
  "open-sockets": async () => (await import("#agent/command/serve-command.ts")).openSocketsCommand(),
  "istio-iptables": async () => (await import("#capture/command/istio-iptables.ts")).istioIptablesCommand(CAPTURE),
  "istio-clean-iptables": async () =>
    (await import("#capture/command/istio-iptables.ts")).istioCleanIptablesCommand(CAPTURE),
  request: async () => (await import("#agent/command/request-command.ts")).requestCommand(),
  wait: async () => (await import("#agent/command/wait-command.ts")).waitCommand(),
  version: async () => (await import("#lib/command/version-command.ts")).versionCommand(),
  completion: async () => (await import("#lib/command/completion-command.ts")).completionCommand(program),
  collateral: async () => (await import("#agent/command/collateral-command.ts")).collateralCommand(program),
};
const HIDDEN: ReadonlySet<string> = new Set(["open-sockets", "collateral"]);
/** Commands that say nothing about others. */
const ALONE: ReadonlySet<string | undefined> = new Set(["proxy", "version"]);

/** The command that runs, whose failure is told. */
let active: Command = program;
program.hook("preAction", (_, command) => {
  active = command;
});

run().catch((error: unknown) => {
  if (error instanceof CommanderError && error.exitCode === 0) return;
  if (error instanceof CommanderError && error.code === HELP_ELSEWHERE) return;
  const text = error instanceof CommanderError ? cobraMessage(error, program) : errorText(error);
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
    return createLogger({ write: streamWriter(process.stdout) });
  }
}

async function run(): Promise<void> {
  ignoreMeaninglessSignals();
  ignoreLostReaders();
  findMachineRoots(process.env);
  const args = commandFirst(process.argv.slice(2));
  for (const [name, command] of Object.entries(COMMANDS))
    if (!ALONE.has(args[0]) || name === args[0]) program.addCommand(await command(), { hidden: HIDDEN.has(name) });
  inCobraStyle(program);
  await program.parseAsync(goSwitches(args), { from: "user" });
}

/** As Go's programs find what the machine trusts; OpenSSL by itself looks only where it was built for. */
function findMachineRoots(env: NodeJS.ProcessEnv): void {
  const { SSL_CERT_FILE, SSL_CERT_DIR } = readEnvironment(MACHINE_TRUST, env).values;
  if (SSL_CERT_FILE !== "" || SSL_CERT_DIR !== "") return;
  // A file is read as a whole by the first connection, whatever that trusts.
  const [folder, file] = [hashedRootsFolder(), systemRootsFile()];
  if (folder !== undefined) env.SSL_CERT_DIR = folder;
  else if (file !== undefined) env.SSL_CERT_FILE = file;
}
