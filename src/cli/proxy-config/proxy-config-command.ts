/** `mizzen proxy-config`: what an Envoy has, in istioctl's tables. */
import { readFile } from "node:fs/promises";
import { text as readAll } from "node:stream/consumers";
import type { JsonObject } from "@bufbuild/protobuf";
import { Command, InvalidArgumentError, Option } from "commander";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { askMember, proxyNamed } from "../mesh/ask-member.ts";
import { finish } from "../terminal/exit-codes.ts";
import { type ChoiceOptions, withChoice } from "../terminal/options.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { logCommand } from "./proxy-log-command.ts";

const FORMATS = ["short", "json", "yaml"] as const;

/** The filters and forms of all commands; each has some of them. */
export interface ProxyConfigOptions extends ChoiceOptions {
  readonly namespace?: string;
  readonly file?: string;
  readonly output: (typeof FORMATS)[number];
  readonly proxyAdminPort: number;
  readonly verbose: boolean;
  readonly withHeaders?: boolean;
  readonly fqdn?: string;
  readonly port?: number;
  readonly subset?: string;
  readonly direction?: string;
  readonly address?: string;
  readonly type?: string;
  readonly name?: string;
  readonly cluster?: string;
  readonly status?: string;
}

type Filter = "fqdn" | "port" | "subset" | "direction" | "address" | "type" | "name" | "cluster" | "status";

interface Page {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly summary: string;
  /** What is asked of Envoy. */
  readonly path: string;
  readonly filters: readonly Filter[];
  readonly verbose?: true;
  readonly headers?: true;
  readonly output?: "json";
  readonly example: string;
}

const FILTERS: Readonly<Record<Filter, string>> = {
  fqdn: "only clusters with this in their host",
  port: "only those of this port",
  subset: "only clusters with this in their subset",
  direction: "only clusters of this direction: inbound or outbound",
  address: "only those at this address",
  type: "only listeners of this type: HTTP, TCP or HTTP+TCP",
  name: "only the route of this name",
  cluster: "only endpoints of this cluster",
  status: "only endpoints of this health: healthy, unhealthy, draining, ...",
};

const PAGES: readonly Page[] = [
  {
    name: "bootstrap",
    aliases: ["b"],
    summary: "what Envoy was started with; -o short for its versions",
    path: "/config_dump?mask=bootstrap",
    filters: [],
    output: "json",
    example: "bootstrap reviews-v1 -o short",
  },
  {
    name: "cluster",
    aliases: ["clusters", "c"],
    summary: "its clusters",
    path: "/config_dump?mask=dynamic_active_clusters,dynamic_warming_clusters,static_clusters",
    filters: ["fqdn", "port", "subset", "direction"],
    example: "cluster reviews-v1 --fqdn ratings --direction outbound -o json",
  },
  {
    name: "listener",
    aliases: ["listeners", "l"],
    summary: "its listeners, what they match and where they lead",
    path: "/config_dump?mask=dynamic_listeners,static_listeners",
    filters: ["address", "port", "type"],
    verbose: true,
    example: "listener reviews-v1 --port 15006",
  },
  {
    name: "route",
    aliases: ["routes", "r"],
    summary: "its routes",
    path: "/config_dump?mask=dynamic_route_configs,static_route_configs",
    filters: ["name"],
    verbose: true,
    example: "route reviews-v1 --name 9080 -o yaml",
  },
  {
    name: "endpoint",
    aliases: ["endpoints", "ep"],
    summary: "its endpoints and their health",
    path: "/clusters?format=json",
    filters: ["address", "port", "cluster", "status"],
    example: "endpoint reviews-v1 --status healthy",
  },
  {
    name: "eds",
    aliases: [],
    summary: "its endpoints as it was sent them",
    path: "/config_dump?include_eds=true",
    filters: ["address", "port", "cluster", "status"],
    example: "eds reviews-v1 --port 9080",
  },
  {
    name: "secret",
    aliases: ["secrets", "s"],
    summary: "its certificates and roots",
    path: "/config_dump?mask=dynamic_active_secrets,dynamic_warming_secrets",
    filters: [],
    example: "secret reviews-v1",
  },
  {
    name: "ecds",
    aliases: ["ec"],
    summary: "settings of extensions that it fetched by name",
    path: "/config_dump",
    filters: [],
    example: "ecds reviews-v1 -o json",
  },
  {
    name: "all",
    aliases: ["a"],
    summary: "all of it",
    path: "/config_dump?include_eds=true",
    filters: ["fqdn", "port", "subset", "direction", "address", "type", "name"],
    verbose: true,
    headers: true,
    example: "all --file config_dump.json --with-headers",
  },
];

export function proxyConfigCommand(terminal: Terminal): Command {
  const group = new Command("proxy-config")
    .alias("pc")
    .summary("show what an Envoy has, in istioctl's tables")
    .description(
      "Shows the configuration of a proxy of a mesh that is up, as its Envoy has it, or of a config dump in a file. The tables and flags are istioctl's.",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  mizzen proxy-config listener reviews-v1\n  mizzen pc c reviews-v1 --fqdn ratings\n  curl localhost:15000/config_dump?include_eds > dump.json; mizzen pc all --file dump.json",
    );
  for (const page of PAGES) group.addCommand(pageCommand(page, terminal));
  group.addCommand(logCommand(terminal));
  for (const command of group.commands) command.exitOverride().showHelpAfterError("(see --help)");
  return group;
}

function pageCommand(page: Page, terminal: Terminal): Command {
  const command = withChoice(new Command(page.name))
    .aliases([...page.aliases])
    .summary(page.summary)
    .description(`Shows of a proxy: ${page.summary}.`)
    .argument("[workload]", "name, name.namespace, or pod/name as istioctl has it; not with --file")
    .option("-n, --namespace <name>", "its namespace")
    .option("-f, --file <path>", "a config dump of Envoy in JSON instead; - reads the input")
    .addOption(
      new Option("-o, --output <format>", "form of the output").choices(FORMATS).default(page.output ?? "short"),
    )
    .option("--proxy-admin-port <port>", "Envoy's admin port", wholeNumber, 15_000)
    .addHelpText("after", `\nExample:\n  mizzen proxy-config ${page.example}`);
  for (const filter of page.filters) {
    const flag = `--${filter} <${filter === "port" ? "number" : "text"}>`;
    if (filter === "port") command.option(flag, FILTERS[filter], wholeNumber);
    else command.option(flag, FILTERS[filter]);
  }
  if (page.verbose === true)
    command.option("--verbose [true|false]", "more columns", (value) => value !== "false", true);
  if (page.headers === true) command.option("--with-headers", "a title above each table");
  return command.action((workload: string | undefined, options: ProxyConfigOptions) =>
    finish(terminal, async () => {
      if ((workload === undefined) === (options.file === undefined))
        throw new MeshError("PROXY_CONFIG_INVALID", `${page.name} needs the name of a workload, or --file`);
      const dump = await dumpOf(page, workload, options);
      const { formatPage } = await import("./dump/page.ts");
      const { allDescriptors } = await import("#lib/descriptors.ts");
      const { output: format, verbose, withHeaders = false } = options;
      const filter = filterOf(page, options);
      const how = { format, verbose: verbose !== false, withHeaders, filter, now: new Date() };
      terminal.print(formatPage(page.name, dump, { ...how, registry: allDescriptors() }));
      return 0;
    }),
  );
}

/** The flags of `--cluster` and others, of those that the command has. */
function filterOf({ filters }: Page, options: ProxyConfigOptions): Partial<Pick<ProxyConfigOptions, Filter>> {
  return Object.fromEntries(filters.map((name) => [name, options[name]]));
}

async function dumpOf(page: Page, workload: string | undefined, options: ProxyConfigOptions): Promise<JsonObject> {
  const { file, proxyAdminPort: port } = options;
  const text =
    workload === undefined
      ? await textOf(file ?? "-")
      : await askMember(await proxyNamed(workload, options), { method: "GET", port, path: page.path });
  try {
    return JSON.parse(text);
  } catch (thrown) {
    throw new MeshError("CONFIG_DUMP_INVALID", `Cannot read "${file ?? workload}" as JSON: ${errorText(thrown)}`);
  }
}

/** A file, or the input. */
export async function textOf(file: string): Promise<string> {
  try {
    return file === "-" ? await readAll(process.stdin) : await readFile(file, "utf8");
  } catch (cause) {
    throw new MeshError("CONFIG_UNREADABLE", `Cannot read "${file}"`, { cause });
  }
}

function wholeNumber(value: string): number {
  if (!/^\d+$/.test(value)) throw new InvalidArgumentError("It is not a number.");
  return Number(value);
}
