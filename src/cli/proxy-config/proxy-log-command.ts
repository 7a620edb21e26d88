/** `mizzen proxy-config log`: the levels at which an Envoy logs. */
import { Command } from "commander";
import { MeshError } from "#lib/mesh-error.ts";
import { parseSelector } from "#model/labels/selector-text.ts";
import type { MemberStatus } from "#standalone/status/status.ts";
import { askMember, proxiesWith, proxyNamed } from "../mesh/ask-member.ts";
import { finish } from "../terminal/exit-codes.ts";
import { type ChoiceOptions, withChoice } from "../terminal/options.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { LOG_LEVELS, levelQueries } from "./log-levels.ts";

interface LogOptions extends ChoiceOptions {
  readonly namespace?: string;
  readonly selector?: string;
  readonly level?: string;
  readonly reset?: boolean;
  readonly proxyAdminPort: string;
}

/** What Envoy starts with under an agent. */
const DEFAULT_LEVEL = "warning";

export function logCommand(terminal: Terminal): Command {
  return withChoice(new Command("log"))
    .alias("o")
    .summary("show or change the levels at which it logs")
    .description("Shows the levels of the loggers of an Envoy, after changing them if that is asked for.")
    .argument("[workload...]", "name, name.namespace, or pod/name as istioctl has it")
    .option("-n, --namespace <name>", "its namespace")
    .option("-l, --selector <labels>", "all proxies with these labels, such as app=web,version!=v1")
    .option("--level <level>", `a level for all loggers, or LOGGER:LEVEL,...; levels are ${LOG_LEVELS.join(", ")}`)
    .option("-r, --reset", `back to "${DEFAULT_LEVEL}"`)
    .option("--proxy-admin-port <port>", "Envoy's admin port", "15000")
    .addHelpText(
      "after",
      "\nExamples:\n  mizzen pc log reviews-v1\n  mizzen pc log reviews-v1 --level http:debug,router:trace\n  mizzen pc log -l app=reviews --level debug",
    )
    .action((workloads: readonly string[], options: LogOptions) =>
      finish(terminal, async () => {
        if (options.reset === true && options.level !== undefined)
          throw new MeshError("PROXY_CONFIG_INVALID", "--level and --reset do not go together: choose one");
        for (const member of await membersOf(workloads, options)) terminal.print(await answerOf(member, options));
        return 0;
      }),
    );
}

async function membersOf(names: readonly string[], options: LogOptions): Promise<readonly MemberStatus[]> {
  const { selector } = options;
  if ((selector === undefined) === (names.length === 0))
    throw new MeshError("PROXY_CONFIG_INVALID", "log needs the name of a workload, or --selector");
  if (selector === undefined) return Promise.all(names.map((name) => proxyNamed(name, options)));
  const parsed = parseSelector(selector);
  if ("wrong" in parsed)
    throw new MeshError("PROXY_CONFIG_INVALID", `--selector ${selector}: cannot read "${parsed.wrong}"`);
  const members = await proxiesWith(parsed, options);
  if (members.length === 0)
    throw new MeshError("MEMBER_UNKNOWN", `no workload with a proxy has the labels ${selector}`);
  return members;
}

async function answerOf(member: MemberStatus, options: LogOptions): Promise<string> {
  const ask = (query: string) =>
    askMember(member, { method: "POST", port: Number(options.proxyAdminPort), path: `/logging${query}` });
  let answer = await ask("");
  const level = options.reset === true ? DEFAULT_LEVEL : options.level;
  if (level !== undefined) {
    const wanted = levelQueries(level, answer);
    if ("wrong" in wanted) throw new MeshError("PROXY_CONFIG_INVALID", wanted.wrong);
    for (const query of wanted.queries) answer = await ask(`?${query}`);
  }
  return `${member.name}.${member.namespace}:\n${answer}`;
}
