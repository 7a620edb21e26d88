/** All commands of `mizzen`. Each loads what it needs when it runs. */
import { Command } from "commander";
import { completionCommand } from "#lib/command/completion-command.ts";
import { versionCommand } from "#lib/command/version-command.ts";
import { createLogger } from "#lib/log/log.ts";
import { applyCommand, deleteCommand } from "./apply/apply-commands.ts";
import { doctorCommand } from "./doctor/doctor-command.ts";
import { downCommand, execCommand, openCommand } from "./down/mesh-commands.ts";
import { xCommand } from "./experimental/x-command.ts";
import { initCommand } from "./init/init-command.ts";
import { installCommand, uninstallCommand, upgradeCommand } from "./install/install-commands.ts";
import { kubeInjectCommand } from "./kube-inject/kube-inject-command.ts";
import { logsCommand } from "./logs/logs-command.ts";
import { manifestCommand, profileCommand } from "./manifest/manifest-commands.ts";
import { proxyConfigCommand } from "./proxy-config/proxy-config-command.ts";
import { proxyStatusCommand } from "./proxy-status/proxy-status-command.ts";
import { psCommand } from "./ps/ps-command.ts";
import { pushesCommand } from "./pushes/pushes-command.ts";
import { attachCommand, scaleCommand, workloadCommands } from "./restart/life-commands.ts";
import { runCommand } from "./run/run-command.ts";
import { shellCommand } from "./shell/shell-command.ts";
import { tagCommand } from "./tag/tag-command.ts";
import { EXIT_CODES_HELP } from "./terminal/exit-codes.ts";
import { nameMeshByEnvironment } from "./terminal/options.ts";
import type { Terminal } from "./terminal/terminal.ts";
import { translateCommand } from "./translate/translate-command.ts";
import { upCommand } from "./up/up-command.ts";

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

/** The program; a wrong command line throws a CommanderError, whichever command it is of. */
export function mizzenProgram(terminal: Terminal): Command {
  const program = new Command("mizzen")
    .description("Runs a service mesh on one machine, from the configuration that production uses.")
    .enablePositionalOptions()
    .addHelpText("after", HELP)
    .hook("preAction", (_, command) => nameMeshByEnvironment(command, terminal));
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
  for (const command of [program, ...below(program)]) command.exitOverride().showHelpAfterError("(see --help)");
  return program;
}

/** Commands do not take over from the one above them how they end. */
function below(command: Command): readonly Command[] {
  return command.commands.flatMap((one) => [one, ...below(one)]);
}

async function openPorts(): Promise<void> {
  const { answerOpenRequest } = await import("#standalone/ports/open-ports.ts");
  await answerOpenRequest();
}

async function runMesh({ self }: Terminal): Promise<void> {
  const { runRunner } = await import("#standalone/run/runner.ts");
  const log = createLogger({ write: (line) => void process.stdout.write(line) });
  process.exitCode = await runRunner({ log, self });
}
