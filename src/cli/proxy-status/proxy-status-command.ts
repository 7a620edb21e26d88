/** `mizzen proxy-status`: who is connected to the control plane, and has what was sent. */
import { Command, Option } from "commander";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { formatOutput } from "#lib/print/output.ts";
import { askMember, proxyNamed } from "../mesh/ask-member.ts";
import { CONTROL_PLANE, controlPlanePage } from "../mesh/control-plane-page.ts";
import { textOf } from "../proxy-config/proxy-config-command.ts";
import { finish } from "../terminal/exit-codes.ts";
import { type ChoiceOptions, withChoice } from "../terminal/options.ts";
import type { Terminal } from "../terminal/terminal.ts";
import {
  formatProxyStatuses,
  formatProxyStatusesInFull,
  type ProxyStatus,
  proxyStatusData,
  statusOfSync,
} from "./proxy-status.ts";

interface StatusOptions extends ChoiceOptions {
  readonly namespace?: string;
  readonly address?: string;
  readonly file?: string;
  readonly output: "table" | "json" | "yaml";
  readonly verbosity: string;
  readonly proxyAdminPort: string;
}

export function proxyStatusCommand(terminal: Terminal): Command {
  return withChoice(new Command("proxy-status"))
    .summary("show whether proxies have what the control plane sent")
    .description(
      "Shows the proxies that are connected to a control plane and the types that they asked for; of one proxy, how what it has differs from what it was sent. The tables are istioctl's.",
    )
    .argument("[workload]", "name, name.namespace, or pod/name as istioctl has it")
    .option("-n, --namespace <name>", "only proxies of this namespace; the namespace of the workload")
    .option("--address <host:port>", "a control plane's monitoring or HTTP address, in place of a mesh that is up")
    .option("--file <path>", "config dump of the proxy, in place of asking it; - reads the input")
    .addOption(
      new Option("-o, --output <format>", "form of the output").choices(["table", "json", "yaml"]).default("table"),
    )
    .addOption(new Option("-v, --verbosity <number>", "1 for the state of each type").choices(["0", "1"]).default("0"))
    .option("--proxy-admin-port <port>", "Envoy's admin port", "15000")
    .addHelpText(
      "after",
      "\nExamples:\n  mizzen proxy-status\n  mizzen proxy-status -v 1\n  mizzen proxy-status reviews-v1\n  mizzen proxy-status --address 127.0.0.1:15014 -o json",
    )
    .action((workload: string | undefined, options: StatusOptions) =>
      finish(terminal, async () => {
        terminal.print(workload === undefined ? await allProxies(options) : await oneProxy(workload, options));
        return 0;
      }),
    );
}

async function allProxies(options: StatusOptions): Promise<string> {
  const text = await controlPlanePage("/debug/syncz", options);
  const statuses = statusesIn(text).filter(
    ({ namespace }) => options.namespace === undefined || namespace === options.namespace,
  );
  if (options.output !== "table") return formatOutput(proxyStatusData(statuses), options.output);
  return options.verbosity === "1" ? formatProxyStatusesInFull(statuses) : formatProxyStatuses(statuses);
}

function statusesIn(text: string): readonly ProxyStatus[] {
  try {
    const rows: unknown = JSON.parse(text);
    if (!Array.isArray(rows)) throw new Error("it is no list");
    return rows.map((row) => statusOfSync(row, CONTROL_PLANE));
  } catch (thrown) {
    throw new MeshError("CONTROL_PLANE_UNREACHABLE", `Cannot read /debug/syncz: ${errorText(thrown)}`);
  }
}

async function oneProxy(workload: string, options: StatusOptions): Promise<string> {
  const [{ compareDumps }, { parseConfigDump }, { allDescriptors }] = await Promise.all([
    import("../proxy-config/dump/comparison.ts"),
    import("../proxy-config/dump/dump.ts"),
    import("#lib/descriptors.ts"),
  ]);
  const isOffline = options.file !== undefined && options.address !== undefined;
  const member = isOffline ? undefined : await proxyNamed(workload, options);
  const id = member === undefined ? proxyId(workload, options) : `${member.name}.${member.namespace}`;
  const question = { method: "GET", port: Number(options.proxyAdminPort), path: "/config_dump" } as const;
  const dump =
    options.file === undefined && member ? await askMember(member, question) : await textOf(options.file ?? "-");
  const sent = await controlPlanePage(`/debug/config_dump?proxyID=${encodeURIComponent(id)}`, options);
  const registry = allDescriptors();
  return compareDumps(parseConfigDump(sent, registry), parseConfigDump(dump, registry));
}

/** How a control plane calls a proxy that nobody here knows. */
function proxyId(workload: string, { namespace }: StatusOptions): string {
  const name = workload.replace(/^pods?\//, "");
  return namespace === undefined || name.includes(".") ? name : `${name}.${namespace}`;
}
