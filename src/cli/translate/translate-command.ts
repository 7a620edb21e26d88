/** `mizzen translate`: what a proxy would get from a folder of configuration, without anybody being asked. */
import { readFile } from "node:fs/promises";
import type { JsonObject } from "@bufbuild/protobuf";
import { Command, InvalidArgumentError, Option } from "commander";
import { MeshError } from "#lib/mesh-error.ts";
import { formatOutput, OUTPUT_FORMATS, type OutputFormat } from "#lib/print/output.ts";
import { EXIT, finish } from "../terminal/exit-codes.ts";
import type { Terminal } from "../terminal/terminal.ts";

const TYPES = ["cds", "eds", "lds", "rds", "sds", "ecds", "nds", "all"] as const;
const BUILDS = ["upstream", "istio"] as const;

export interface TranslateOptions {
  readonly file: readonly string[];
  readonly proxy: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly namespace?: string;
  readonly serviceAccount?: string;
  readonly metadata?: string;
  readonly locality?: string;
  readonly envoyVersion?: string;
  readonly proxyBuild: (typeof BUILDS)[number];
  readonly extensions?: readonly string[];
  readonly type: readonly (typeof TYPES)[number][];
  readonly name?: readonly string[];
  readonly meshConfig?: string;
  readonly meshNetworks?: string;
  readonly setFeature?: Readonly<Record<string, string>>;
  readonly domain: string;
  readonly clusterId: string;
  readonly revision: string;
  readonly diff?: string;
  readonly explain?: boolean;
  readonly output?: OutputFormat;
}

const HELP = `
Examples:
  mizzen translate -f config/ --proxy 'sidecar~10.0.0.1~app-1.default~default.svc.cluster.local' --labels app=app
  mizzen translate -f samples/bookinfo --proxy reviews-v1 --type rds -o yaml
  mizzen translate -f config/ --proxy 'router~10.0.0.9~gw-1.istio-system~istio-system.svc.cluster.local' --labels istio=ingressgateway --explain
  mizzen translate -f config/ --proxy reviews-v1 --diff changed/        what would change if changed/ took the place of config/

The mesh config is that of --mesh-config, else of the folder: the ConfigMap istio of istio-system, an IstioOperator,
a mesh.yaml, or a file meshconfig.yaml that is nothing but the mesh config.

Exit codes: 0 done; 1 some objects have errors and were left out (they are listed on stderr);
2 wrong command line, or nothing to read. With --diff: 0 nothing changes, 1 something does, 2 trouble,
objects with errors included.`;

export function translateCommand(terminal: Terminal): Command {
  const list = (text: string, before: readonly string[] = []) => [...before, ...text.split(",").filter(Boolean)];
  return new Command("translate")
    .summary("show what a proxy would get from a folder of configuration")
    .description(
      "Prints the Envoy resources that a proxy would get from a folder of Kubernetes and Istio configuration, offline, as JSON with @type, sorted by type and name.",
    )
    .addOption(
      new Option("-f, --file <path>", "folder or file with configuration; may be repeated")
        .makeOptionMandatory()
        .argParser((path: string, before: readonly string[] = []) => [...before, path]),
    )
    .requiredOption(
      "--proxy <node>",
      "type~address~name.namespace~domain; @FILE with the node of an Envoy in JSON; or the name of a workload of the folder's mesh.yaml",
    )
    .option("-l, --labels <key=value,...>", "labels of the proxy's workload", keyValues)
    .option("-n, --namespace <name>", "its namespace; default: that of its name")
    .option("--service-account <name>", "its service account")
    .option("--metadata <json>", "more of its node metadata; @FILE reads a file")
    .option("--locality <region/zone/subzone>", "where it says it is", locality)
    .option("--envoy-version <version>", "version of its Envoy", envoyVersion)
    .addOption(
      new Option("--proxy-build <build>", "whose build of Envoy it is: Istio's has filters of its own")
        .choices(BUILDS)
        .default("upstream"),
    )
    .option("--extensions <name,...>", "extensions of its Envoy, in place of those of the build", list)
    .addOption(
      new Option("-t, --type <type,...>", `types to show: ${TYPES.join(", ")}`)
        .argParser((text: string) => text.split(",").map(typeOf))
        .default(["all"], "all"),
    )
    .option("--name <name,...>", "only resources of these names", list)
    .option("--mesh-config <file>", "file with the mesh config")
    .option("--mesh-networks <file>", "file with the networks of the mesh")
    .option(
      "--set-feature <NAME=value,...>",
      "switches of istiod (PILOT_...), over those of the environment",
      keyValues,
    )
    .option("--domain <domain>", "DNS domain of the cluster", "cluster.local")
    .option("--cluster-id <name>", "cluster of the control plane", "Kubernetes")
    .option("--revision <name>", "objects of another istio.io/rev are left out", "default")
    .option("--diff <other>", "show what would change if this folder took the place of -f")
    .option("--explain", "show the objects that each resource came from, in place of its content")
    .addOption(
      new Option("-o, --output <format>", "form of the output; default: json, for --diff and --explain text").choices(
        OUTPUT_FORMATS,
      ),
    )
    .addHelpText("after", HELP)
    .action((options: TranslateOptions) => finish(terminal, () => runTranslate(terminal, options)));
}

function locality(text: string): string {
  if (text.split("/").length > 3)
    throw new InvalidArgumentError("It must be REGION, REGION/ZONE or REGION/ZONE/SUBZONE.");
  return text;
}

function envoyVersion(text: string): string {
  if (!/^\d+\.\d+\.\d+/.test(text)) throw new InvalidArgumentError("It must be a version such as 1.40.0.");
  return text;
}

async function runTranslate(terminal: Terminal, options: TranslateOptions): Promise<number> {
  const { diff, file, output } = options;
  if (diff !== undefined && options.explain === true)
    throw new MeshError("TRANSLATE_INVALID", "--diff and --explain do not go together: choose one");
  const { translateFolder } = await import("./translate-folder.ts");
  const metadata = await metadataOf(options.metadata);
  const given = { ...options, metadata, node: await nodeOf(options.proxy), env: terminal.env };
  const before = await translateFolder(given, file);
  if (diff === undefined) return showOne(terminal, options, before);
  const after = await translateFolder(given, [diff]);
  const { formatChanges, resourceChanges } = await import("./difference.ts");
  for (const line of [...before.complaints, ...after.complaints]) terminal.say(line);
  const changes = resourceChanges(before.resources, after.resources);
  const text = formatChanges(changes, { folders: [file.join(","), diff], style: terminal.style });
  terminal.print(output === undefined ? text : formatOutput(changes, output));
  if (before.hasErrors || after.hasErrors) return EXIT.usage;
  return changes.length === 0 ? 0 : EXIT.failed;
}

type Translated = Awaited<ReturnType<typeof import("./translate-folder.ts")["translateFolder"]>>;

function showOne(terminal: Terminal, options: TranslateOptions, translated: Translated): number {
  const { explain, output, name = [], type } = options;
  for (const line of translated.complaints) terminal.say(line);
  const found = new Set(translated.resources.map((resource) => resource.name));
  const types = type.includes("all") ? "any type" : type.join(", ");
  for (const one of name.filter((wanted) => !found.has(wanted)))
    terminal.say(`warning: --name ${one}: no resource of ${types} has this name`);
  if (explain === true) {
    const origins = translated.origins();
    terminal.print(output === undefined ? origins.text : formatOutput(origins.data, output));
  } else
    terminal.print(
      formatOutput(
        translated.resources.map(({ json }) => json),
        output ?? "json",
      ),
    );
  return translated.hasErrors ? EXIT.failed : 0;
}

function typeOf(text: string): (typeof TYPES)[number] {
  const type = TYPES.find((known) => known === text.trim().toLowerCase());
  if (type === undefined) throw new InvalidArgumentError(`There are ${TYPES.join(", ")}.`);
  return type;
}

function keyValues(text: string, before: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const entries = text
    .split(",")
    .filter(Boolean)
    .map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw new InvalidArgumentError(`"${pair}" is not KEY=VALUE.`);
      return [pair.slice(0, at).trim(), pair.slice(at + 1)];
    });
  return { ...before, ...Object.fromEntries(entries) };
}

/** The file that `@FILE` names. */
async function nodeOf(proxy: string) {
  if (!proxy.startsWith("@")) return undefined;
  const { parseNodeFile } = await import("./simulated-proxy.ts");
  const file = proxy.slice(1);
  const text = await readFile(file, "utf8").catch((cause: unknown) => {
    throw new MeshError("CONFIG_UNREADABLE", `Cannot read "${file}"`, { cause });
  });
  const { value, problems } = parseNodeFile(text);
  if (value !== undefined) return value;
  throw new MeshError("TRANSLATE_INVALID", `"${file}" ${problems.map(({ message }) => message).join("; ")}`);
}

async function metadataOf(given = "{}"): Promise<JsonObject> {
  try {
    const text = given.startsWith("@") ? await readFile(given.slice(1), "utf8") : given;
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
    throw new Error("it is not an object");
  } catch (cause) {
    throw new MeshError("TRANSLATE_INVALID", "Cannot read --metadata as JSON", { cause });
  }
}
