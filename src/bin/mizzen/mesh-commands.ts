/** Commands about a mesh that is up: `down`, `ps`, `exec`, `logs`. */
import { resolve } from "node:path";
import { Command, Option } from "commander";
import { formatMembers, formatPublished } from "#cli/mesh-table.ts";
import { formatOutput, OUTPUT_FORMATS, type OutputFormat } from "#cli/output.ts";
import type { MeshStatus } from "#standalone/run/status.ts";
import { EXIT_CODES_HELP, finish } from "./exit-codes.ts";
import { rowsOf } from "./member-rows.ts";
import { type ChoiceOptions, choiceOf, defaultStateFolder, needRoot, withChoice } from "./options.ts";
import type { Terminal } from "./terminal.ts";

export function downCommand(terminal: Terminal): Command {
  return withChoice(new Command("down"))
    .summary("stop a mesh and remove everything of it")
    .description(
      "Stops a mesh and removes its processes, network namespaces, rules and sockets, also after a crash. Identity and logs stay in the state folder.",
    )
    .argument("[folder]", "folder of the mesh's mesh.yaml; not needed when only one mesh is up")
    .addHelpText("after", "\nExamples:\n  mizzen down\n  mizzen down samples/bookinfo\n  mizzen down --mesh bookinfo")
    .action((folder: string | undefined, options: ChoiceOptions) =>
      finish(terminal, () => runDown(terminal, folder, options)),
    );
}

async function runDown(terminal: Terminal, folder: string | undefined, options: ChoiceOptions): Promise<number> {
  needRoot("take a mesh down");
  const { down, meshToTakeDown } = await import("#standalone/commands/down.ts");
  const stateFolder = options.state === undefined ? undefined : resolve(options.state);
  const mesh = await meshToTakeDown({
    folder,
    choice: { name: options.mesh, stateFolder },
    defaultStateFolder: (name) => defaultStateFolder(terminal, name),
  });
  if (mesh === undefined) {
    terminal.say("no mesh is up: nothing to do");
    return 0;
  }
  await down(mesh);
  terminal.say(`mesh "${mesh.name}" is down, nothing of it is left`);
  return 0;
}

interface PsOptions extends ChoiceOptions {
  readonly output?: OutputFormat;
}

export function psCommand(terminal: Terminal): Command {
  return withChoice(new Command("ps"))
    .summary("show the workloads of a mesh")
    .description(
      "Shows the control plane, gateways and workloads of a mesh: where they are, whether they are ready, restarts.",
    )
    .addOption(new Option("-o, --output <format>", "form of the output").choices(OUTPUT_FORMATS))
    .addHelpText("after", "\nExamples:\n  mizzen ps\n  mizzen ps -o json | jq '.members[] | select(.ready | not)'")
    .action((options: PsOptions) =>
      finish(terminal, async () => {
        needRoot("look at a mesh");
        const { findStatus } = await import("#standalone/commands/find-mesh.ts");
        const { status, watched } = await findStatus(choiceOf(options));
        terminal.print(options.output === undefined ? psText(status, terminal) : formatOutput(status, options.output));
        if (!watched)
          terminal.say(
            `the runner of mesh "${status.name}" is gone: nobody watches over it; run \`mizzen up\` or \`mizzen down\``,
          );
        return 0;
      }),
    );
}

function psText(status: MeshStatus, { style }: Terminal): string {
  const published = formatPublished(status.published, style);
  return `${formatMembers(rowsOf(status), style, true)}${published === "" ? "" : `\n${published}`}`;
}

export function execCommand(terminal: Terminal): Command {
  return withChoice(new Command("exec"))
    .summary("run a command inside a workload")
    .description(
      "Runs a command in the network of a workload, as its app's user, with its variables; its exit code is passed on.",
    )
    .argument("<workload>", "name, or name.namespace; istiod is the control plane")
    .argument("<command...>", "what to run")
    .passThroughOptions()
    .addHelpText(
      "after",
      `\nExamples:\n  mizzen exec sleep -- curl -sS http://httpbin:8000/headers\n  mizzen exec sleep sh\n\n${EXIT_CODES_HELP}`,
    )
    .action((workload: string, command: string[], options: ChoiceOptions) =>
      finish(terminal, async () => {
        needRoot("run something in a mesh");
        const [{ findMember, findStatus }, { execIn }] = await Promise.all([
          import("#standalone/commands/find-mesh.ts"),
          import("#standalone/commands/exec.ts"),
        ]);
        const { status } = await findStatus(choiceOf(options));
        const plain = command[0] === "--" ? command.slice(1) : command;
        return execIn(findMember(status, workload).shell, plain, terminal.env.TERM);
      }),
    );
}

interface LogsOptions extends ChoiceOptions {
  readonly proxy?: boolean;
  readonly follow?: boolean;
}

export function logsCommand(terminal: Terminal): Command {
  return withChoice(new Command("logs"))
    .summary("show what a workload or its proxy printed")
    .description(
      "Shows the log of a workload's app, or with --proxy of its agent and Envoy; istiod is the control plane.",
    )
    .argument("<workload>", "name, or name.namespace")
    .option("--proxy", "the log of the proxy instead")
    .option("-f, --follow", "go on with what is added")
    .addHelpText(
      "after",
      "\nExamples:\n  mizzen logs productpage -f\n  mizzen logs reviews-v1 --proxy\n  mizzen logs istiod",
    )
    .action((workload: string, options: LogsOptions) =>
      finish(terminal, async () => {
        needRoot("read the logs of a mesh");
        const [{ findMember, findStatus }, { logFile, printLog }] = await Promise.all([
          import("#standalone/commands/find-mesh.ts"),
          import("#standalone/commands/logs.ts"),
        ]);
        const { status } = await findStatus(choiceOf(options));
        const file = logFile(findMember(status, workload), options.proxy === true);
        const never = new AbortController().signal;
        const write = (chunk: Buffer) => void process.stdout.write(chunk);
        await printLog({ file, follow: options.follow === true, write }, never);
        return 0;
      }),
    );
}
