/** `mizzen logs`: what workloads and their proxies printed, several of them side by side. */
import { Command } from "commander";
import type { MemberStatus } from "#standalone/status/status.ts";
import { finish } from "../terminal/exit-codes.ts";
import { type ChoiceOptions, choiceOf, needRoot, withChoice } from "../terminal/options.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface LogsOptions extends ChoiceOptions {
  readonly proxy?: boolean;
  readonly access?: boolean;
  readonly follow?: boolean;
}

export function logsCommand(terminal: Terminal): Command {
  return withChoice(new Command("logs"))
    .summary("show what workloads or their proxies printed")
    .description(
      "Shows the logs of workloads, or with --proxy of their agents and Envoys; istiod is the control plane. With several, or a workload with replicas, each line begins with the name of its member.",
    )
    .argument("[workloads...]", "names, or name.namespace; all of the mesh when left out")
    .option("--proxy", "the log of the proxy instead")
    .option("--access", "only the access log of the proxy: one line for each request")
    .option("-f, --follow", "go on with what is added")
    .addHelpText(
      "after",
      "\nExamples:\n  mizzen logs productpage -f\n  mizzen logs reviews-v1 reviews-v2 --access -f\n  mizzen logs istiod",
    )
    .action((workloads: string[], options: LogsOptions) =>
      finish(terminal, () => runLogs(terminal, workloads, options)),
    );
}

async function runLogs(terminal: Terminal, workloads: readonly string[], options: LogsOptions): Promise<number> {
  needRoot("read the logs of a mesh");
  const [{ findMembers, findStatus }, { logFile, printLog }, { accessOnly, prefixed, throughLines }] =
    await Promise.all([
      import("#standalone/commands/find-mesh.ts"),
      import("#standalone/commands/logs.ts"),
      import("#standalone/commands/log-lines.ts"),
    ]);
  const { status } = await findStatus(choiceOf(options));
  const proxy = options.proxy === true || options.access === true;
  const members =
    workloads.length > 0
      ? workloads.flatMap((name) => findMembers(status, name))
      : status.members.filter(({ logs }) => !proxy || logs.proxy !== undefined);
  const never = new AbortController().signal;
  const print = (member: MemberStatus, index: number, all: readonly MemberStatus[]) => {
    const prefix = all.length === 1 ? "" : prefixed(index, all, terminal.style);
    const write =
      prefix === "" && options.access !== true
        ? (chunk: Buffer) => void process.stdout.write(chunk)
        : throughLines((line) => {
            if (options.access !== true || accessOnly(line)) terminal.print(`${prefix}${line}\n`);
          });
    const input = { file: logFile(member, proxy), follow: options.follow === true, write };
    return members.length === 1 ? printLog(input, never) : printLog(input, never).catch(() => undefined);
  };
  await Promise.all(members.map(print));
  return 0;
}
