/** `mizzen`, the person's tool. Each command loads what it needs when it runs. */
import { Command, CommanderError } from "commander";
import { createLogger } from "#lib/log.ts";
import { completionCommand } from "./completion-command.ts";
import { applyCommand, deleteCommand } from "./mizzen/apply-commands.ts";
import { doctorCommand } from "./mizzen/doctor-command.ts";
import { EXIT, EXIT_CODES_HELP } from "./mizzen/exit-codes.ts";
import { initCommand } from "./mizzen/init-command.ts";
import { installCommand, uninstallCommand, upgradeCommand } from "./mizzen/install-commands.ts";
import { kubeInjectCommand } from "./mizzen/kube-inject-command.ts";
import { attachCommand, scaleCommand, workloadCommands } from "./mizzen/life-commands.ts";
import { logsCommand } from "./mizzen/logs-command.ts";
import { manifestCommand, profileCommand } from "./mizzen/manifest-commands.ts";
import { downCommand, execCommand, openCommand } from "./mizzen/mesh-commands.ts";
import { proxyConfigCommand } from "./mizzen/proxy-config-command.ts";
import { proxyStatusCommand } from "./mizzen/proxy-status-command.ts";
import { psCommand } from "./mizzen/ps-command.ts";
import { pushesCommand } from "./mizzen/pushes-command.ts";
import { runOnOwnMachine } from "./mizzen/rootless.ts";
import { runCommand } from "./mizzen/run-command.ts";
import { shellCommand } from "./mizzen/shell-command.ts";
import { tagCommand } from "./mizzen/tag-command.ts";
import { processTerminal, type Terminal } from "./mizzen/terminal.ts";
import { translateCommand } from "./mizzen/translate-command.ts";
import { upCommand } from "./mizzen/up-command.ts";
import { xCommand } from "./mizzen/x-command.ts";
import { versionCommand } from "./version-command.ts";

const HELP = `
Examples:
  mizzen up samples/bookinfo                                   run a mesh on this machine
  mizzen ps                                                    show its workloads
  mizzen exec sleep -- curl -sS http://httpbin:8000/headers    call from inside it
  mizzen run -- curl -sS http://httpbin:8000/headers           run any process as a member of it
  mizzen proxy-config listener reviews-v1                      what its Envoy has
  mizzen translate -f config/ --proxy reviews-v1 --diff new/   what a change of configuration would do, offline
  mizzen down                                                  remove it

${EXIT_CODES_HELP}`;

function mizzen(terminal: Terminal): Command {
  const program = new Command("mizzen")
    .description("Runs a service mesh on one machine, from the configuration that production uses.")
    .enablePositionalOptions()
    .addHelpText("after", HELP);
  const commands = [
    initCommand,
    doctorCommand,
    upCommand,
    downCommand,
    psCommand,
    pushesCommand,
    execCommand,
    shellCommand,
    logsCommand,
    openCommand,
    applyCommand,
    deleteCommand,
    runCommand,
    scaleCommand,
    attachCommand,
    translateCommand,
    proxyStatusCommand,
    proxyConfigCommand,
    kubeInjectCommand,
    installCommand,
    upgradeCommand,
    uninstallCommand,
    manifestCommand,
    profileCommand,
    tagCommand,
    xCommand,
  ];
  const made = [...commands.map((make) => make(terminal)), ...workloadCommands(terminal)];
  for (const command of [...made, versionCommand()]) program.addCommand(command);
  program.addCommand(completionCommand(program));
  // Not for people: what `up` starts inside the fabric's network namespace, and what that starts outside of it.
  program.addCommand(
    new Command("run-mesh").action(() => runMesh(terminal)),
    { hidden: true },
  );
  program.addCommand(new Command("open-ports").action(openPorts), { hidden: true });
  for (const command of [program, ...program.commands]) command.exitOverride().showHelpAfterError("(see --help)");
  return program;
}

async function openPorts(): Promise<void> {
  const { answerOpenRequest } = await import("#standalone/up/open-ports.ts");
  await answerOpenRequest();
}

async function runMesh({ self }: Terminal): Promise<void> {
  const { runRunner } = await import("#standalone/run/runner.ts");
  const log = createLogger({ write: (line) => void process.stdout.write(line) });
  process.exitCode = await runRunner({ log, self });
}

async function main(): Promise<void> {
  try {
    const terminal = processTerminal();
    const program = mizzen(terminal);
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
