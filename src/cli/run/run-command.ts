/** `mizzen run`: any process, in a running mesh. */
import { resolve } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import type { Person } from "#standalone/commands/run.ts";
import { EXIT_CODES_HELP, finish } from "../terminal/exit-codes.ts";
import { type ChoiceOptions, choiceOf, needRoot, seconds, withChoice } from "../terminal/options.ts";
import { ownerOfMachine } from "../terminal/rootless.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface RunFlags extends ChoiceOptions {
  readonly name?: string;
  readonly namespace?: string;
  readonly serviceAccount?: string;
  readonly label?: Readonly<Record<string, string>>;
  readonly port?: readonly number[];
  readonly env?: Readonly<Record<string, string>>;
  readonly workdir?: string;
  readonly user?: string;
  readonly inject: boolean;
  readonly timeout: number;
}

const HELP = `
Examples:
  mizzen run -- curl -sS http://reviews:9080/reviews/1                      call a service, with an identity of its own
  mizzen run --service-account batch -- node import.js                      a job; its exit code is passed on
  mizzen run --name web --label app=web --port 8080 -- node web.js          serve, as long as it runs

It runs as you, in this folder, with your variables. Services whose selector matches its labels send calls to it as soon as
it listens on its first --port. Exit code: that of the command, 128 + N when signal N ended it; before it was started:
${EXIT_CODES_HELP}`;

export function runCommand(terminal: Terminal): Command {
  return withChoice(new Command("run"))
    .summary("run a process as a member of a mesh")
    .description(
      "Runs a command in a running mesh, with a network, an identity and a sidecar of its own, which are ready before it starts. It ends with the command and leaves nothing.",
    )
    .argument("<command...>", "what to run")
    .passThroughOptions()
    .option("--name <name>", "name of the member (default: run- and a random number)")
    .option("--namespace <name>", "namespace (default: default)")
    .option("--service-account <name>", "whose identity it has (default: default)")
    .option("--label <key=value>", "label; may be given several times (default: app=NAME)", pairs)
    .option("--port <number>", "port that it listens on; may be given several times", ports)
    .option("--env <name=value>", "variable; may be given several times", pairs)
    .option("--workdir <folder>", "folder to run it in (default: this one)")
    .option("--user <user>", "account to run it as, with a clean environment (default: your own)")
    .option("--no-inject", "without a sidecar: plain text, no identity")
    .option("--timeout <seconds>", "how long its sidecar may take to become ready", seconds, 60)
    .addHelpText("after", HELP)
    .action((command: string[], flags: RunFlags) => finish(terminal, () => run(terminal, command, flags)));
}

async function run(terminal: Terminal, command: readonly string[], flags: RunFlags): Promise<number> {
  needRoot("run something in a mesh");
  const [{ findMesh }, { runInMesh }] = await Promise.all([
    import("#standalone/commands/find-mesh.ts"),
    import("#standalone/commands/run.ts"),
  ]);
  const mesh = await findMesh(choiceOf(flags));
  const request = {
    name: flags.name,
    namespace: flags.namespace,
    serviceAccount: flags.serviceAccount,
    labels: flags.label,
    ports: flags.port ?? [],
    env: flags.env ?? {},
    workdir: resolve(flags.workdir ?? "."),
    user: flags.user,
    inject: flags.inject,
    command: command[0] === "--" ? command.slice(1) : command,
    timeoutMs: flags.timeout * 1000,
  };
  return runInMesh(mesh.stateFolder, request, personOf(terminal));
}

/** Whoever sits at the terminal: behind sudo, or on a machine of one's own, that is not the account we run as. */
function personOf({ env }: Terminal): Person {
  const behind = ownerOfMachine(env) ?? sudoer(env);
  const uid = behind?.uid ?? process.getuid?.() ?? 0;
  const gid = behind?.gid ?? process.getgid?.() ?? 0;
  return { account: { uid, gid, home: env.HOME ?? "/" }, env };
}

function sudoer({ SUDO_UID, SUDO_GID }: Terminal["env"]): { readonly uid: number; readonly gid: number } | undefined {
  if (SUDO_UID === undefined || SUDO_GID === undefined) return undefined;
  return { uid: Number(SUDO_UID), gid: Number(SUDO_GID) };
}

function pairs(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("It must be NAME=VALUE.");
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

function ports(text: string, before: readonly number[] = []): number[] {
  if (!/^\d{1,5}$/.test(text)) throw new InvalidArgumentError("It must be a port number.");
  return [...before, Number(text)];
}
