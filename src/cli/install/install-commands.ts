/** `mizzen install`, `upgrade`, `uninstall` and `x precheck`: the mesh in a cluster. */
import { createInterface } from "node:readline/promises";
import { parseDuration } from "@mizzen/go-text/duration";
import { Command, InvalidArgumentError, Option } from "commander";
import type { InstallCluster } from "#install/cluster.ts";
import type { PatientApi } from "#install/patient-api.ts";
import type { RevisionTags } from "#install/revision-tags.ts";
import type { Resolved } from "#install/settings.ts";
import { isRecord } from "#lib/json/is-record.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { formatOutput, OUTPUT_FORMATS, type OutputFormat } from "#lib/print/output.ts";
import {
  type ClusterOptions,
  clusterOf,
  PROFILES_HELP,
  resolved,
  type Settings,
  withCluster,
  withSettings,
} from "../cluster/install-options.ts";
import { printManifest } from "../manifest/manifest-commands.ts";
import { EXIT, finish } from "../terminal/exit-codes.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface InstallOptions extends Settings, ClusterOptions {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly force?: boolean;
  readonly wait: boolean;
  readonly readinessTimeout: string;
}

interface PrecheckOptions extends Settings, ClusterOptions {
  readonly output?: OutputFormat;
}

interface UninstallOptions extends Settings, ClusterOptions {
  readonly yes?: boolean;
  readonly skipConfirmation?: boolean;
  readonly dryRun?: boolean;
  readonly purge?: boolean;
}

const INSTALL_HELP = `
Examples:
  mizzen install -y                                         the default profile into istio-system
  mizzen install --set profile=demo -y
  mizzen install -f my.yaml --set meshConfig.accessLogFile=/dev/stdout
  mizzen install --revision canary --set profile=minimal    a second control plane beside the first
  mizzen install --dry-run                                  what would be done
${PROFILES_HELP}`;

export function installCommand(terminal: Terminal): Command {
  return installing("install", "install the mesh into a cluster", terminal).addHelpText("after", INSTALL_HELP);
}

export function upgradeCommand(terminal: Terminal): Command {
  return installing("upgrade", "bring an installed mesh to this version and these settings", terminal).addHelpText(
    "after",
    `
Examples:
  mizzen upgrade -y --set profile=demo    settings are those of this command, not added to those of the last

Objects that the new settings do not have are removed.`,
  );
}

function installing(name: "install" | "upgrade", summary: string, terminal: Terminal): Command {
  const command = new Command(name).summary(summary).description(`${sentence(summary)}, by server-side apply.`);
  return withCluster(withSettings(command))
    .option("-y, --yes", "do not ask")
    .option("--skip-confirmation", "the same")
    .option("--dry-run", "print what would be applied, change nothing")
    .option("--force", "go on in spite of what stands in the way")
    .option("--no-wait", "do not wait until everything is ready")
    .option("--readiness-timeout <duration>", "how long to wait", "300s")
    .action((options: InstallOptions & { skipConfirmation?: boolean }) =>
      finish(terminal, () =>
        install({ ...options, yes: options.yes ?? options.skipConfirmation ?? false }, name, terminal),
      ),
    );
}

export function uninstallCommand(terminal: Terminal): Command {
  const command = new Command("uninstall")
    .summary("remove the mesh from a cluster")
    .description(
      "Removes what `mizzen install` put into a cluster. Configuration of people, and definitions of kinds, stay unless --purge.",
    );
  return withCluster(withSettings(command))
    .option("--purge", "all revisions, definitions of kinds with all objects of them, roots, and the namespace")
    .option("-y, --yes", "do not ask")
    .option("--skip-confirmation", "the same")
    .option("--dry-run", "say what would be removed, change nothing")
    .addHelpText(
      "after",
      `
Examples:
  mizzen uninstall -y
  mizzen uninstall --revision canary -y
  mizzen uninstall -f gateways.yaml -y   what \`mizzen install -f gateways.yaml\` put there, by the name of the IstioOperator
  mizzen uninstall --purge -y            leaves nothing, VirtualServices and all other configuration included`,
    )
    .action((options: UninstallOptions) => finish(terminal, () => uninstall(options, terminal)));
}

/** `mizzen x precheck`. */
export function precheckCommand(terminal: Terminal): Command {
  const command = new Command("precheck")
    .summary("whether the mesh can be installed into a cluster")
    .description(
      "Looks for what would stand in the way of `mizzen install` with the same settings: version, rights, other control planes.",
    );
  return withCluster(withSettings(command))
    .addOption(new Option("-o, --output <format>", "instead of text").choices(OUTPUT_FORMATS))
    .option(
      "--output-threshold <level>",
      "what to tell of: Info, Warning or Error; all that is looked for is an Error",
      level,
    )
    .addHelpText("after", "\nExamples:\n  mizzen x precheck\n  mizzen x precheck --set profile=demo -o json")
    .action((options: PrecheckOptions) => finish(terminal, () => precheck(options, terminal)));
}

function level(text: string): string {
  const found = ["Info", "Warning", "Error"].find((name) => name.toLowerCase() === text.toLowerCase());
  if (found === undefined) throw new InvalidArgumentError("Choose one of Info, Warning, Error.");
  return found;
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

async function install(options: InstallOptions, verb: "install" | "upgrade", terminal: Terminal): Promise<number> {
  const timeoutMs = parseDuration(options.readinessTimeout);
  if (timeoutMs === undefined) {
    throw new MeshError("INSTALL_INVALID", `--readiness-timeout: "${options.readinessTimeout}" is no duration`);
  }
  if (options.dryRun === true) return printManifest(options, terminal);
  const { NO_OWNER_NAME } = await import("#install/cluster.ts");
  const { manifestOf } = await import("#install/manifest.ts");
  const { obstacles } = await import("#install/precheck.ts");
  const settings = await resolved(options, terminal);
  const objects = manifestOf(settings, (line) => terminal.say(`warning: ${line}`));
  const { revision: owner, namespace } = settings;
  const { api, cluster, server, close } = await clusterOf(options, terminal);
  try {
    const inTheWay = await obstacles(api, objects, owner);
    tell(inTheWay, terminal);
    if (inTheWay.length > 0 && options.force !== true) {
      throw new MeshError("INSTALL_BLOCKED", "nothing was changed; --force goes on in spite of it");
    }
    const question = `This will ${verb} ${objects.length} objects of revision "${owner}" in ${namespace} of ${server}.`;
    if (options.yes !== true && !(await agreed(question, terminal))) return EXIT.interrupted;
    const tagged = await applied({ cluster, api, objects, settings }, terminal);
    await cluster.prune([...objects, ...tagged], { revision: owner, name: ownerName(settings) ?? NO_OWNER_NAME });
    if (options.wait) await cluster.untilReady(objects, { timeoutMs, signal: AbortSignal.any([]) });
    terminal.say(`${verb === "install" ? "installed" : "upgraded"}: revision "${owner}" in ${namespace}`);
    return 0;
  } finally {
    close();
  }
}

/**
 * Applies objects and, for the first revision and for the one without a name, the tag `default`. Gives the objects of the tag. While
 * a tag leads to the nameless revision, its own webhook matches nothing: else pods would be injected twice.
 */
async function applied({ cluster, api, objects, settings }: Application, terminal: Terminal) {
  const { RevisionTags } = await import("#install/revision-tags.ts");
  const { DEFAULT_TAG, DEFAULT_VALIDATOR, deactivated, isDefaultInjection } = await import("#install/tag-objects.ts");
  const { revision, namespace, chart, values } = settings;
  const tags = new RevisionTags(api, namespace);
  const before = await tags.defaultRevision();
  const hasInjection = objects.some(({ kind }) => kind === "MutatingWebhookConfiguration");
  if (!hasInjection || (revision !== DEFAULT_TAG && before !== undefined)) {
    await cluster.apply(objects);
    return [];
  }
  if (before !== undefined && before !== revision) {
    terminal.say(`those who name no revision were of revision "${before}" and are of "${revision}" from now on`);
  }
  // The tag brings its own, which leads to the same place.
  const own = objects.filter(({ metadata }) => metadata.name !== DEFAULT_VALIDATOR);
  await cluster.apply(own.map((object) => (isDefaultInjection(object) ? deactivated(object) : object)));
  const { sidecarInjectorWebhook: webhook } = values;
  const allNamespaces = isRecord(webhook) && webhook.enableNamespacesByDefault === true;
  const request = { tag: DEFAULT_TAG, revision, namespace, owner: revision, allNamespaces };
  const all = await tags.objects(request, chart, { overwrite: true, onlyPrint: false });
  const isValidation = ({ kind }: RawObject) => kind === "ValidatingWebhookConfiguration";
  const validates = objects.some(isValidation);
  if (!validates) await cluster.take(all.filter(isValidation));
  const tagged = all.filter((object) => validates || !isValidation(object));
  await cluster.apply(tagged);
  return tagged;
}

interface Application {
  readonly cluster: InstallCluster;
  readonly api: PatientApi;
  readonly objects: readonly RawObject[];
  readonly settings: Resolved;
}

/** Says what stands in the way, one line each. */
function tell(obstacles: readonly string[], terminal: Terminal): void {
  for (const line of obstacles) terminal.say(`in the way: ${line}`);
}

async function precheck(options: PrecheckOptions, terminal: Terminal): Promise<number> {
  const { manifestOf } = await import("#install/manifest.ts");
  const { obstacles } = await import("#install/precheck.ts");
  const settings = await resolved(options, terminal);
  const { api, server, close } = await clusterOf(options, terminal);
  try {
    const found = await obstacles(api, manifestOf(settings), settings.revision);
    if (options.output !== undefined) terminal.print(formatOutput({ server, inTheWay: found }, options.output));
    else if (found.length === 0) terminal.print(`nothing is in the way of an installation into ${server}\n`);
    else tell(found, terminal);
    return found.length === 0 ? 0 : EXIT.failed;
  } finally {
    close();
  }
}

async function uninstall(options: UninstallOptions, terminal: Terminal): Promise<number> {
  const { RevisionTags } = await import("#install/revision-tags.ts");
  const settings = await resolved(options, terminal);
  const { revision, namespace } = settings;
  const name = ownerName(settings);
  const { api, cluster, server, close } = await clusterOf(options, terminal);
  try {
    const part = name === undefined ? `revision "${revision}"` : `what "${name}" asked for of revision "${revision}"`;
    const what = options.purge === true ? "everything of the mesh, all of its configuration included," : part;
    const isSure = options.yes === true || options.skipConfirmation === true || options.dryRun === true;
    if (!isSure && !(await agreed(`This will remove ${what} from ${server}.`, terminal))) return EXIT.interrupted;
    const owner = name === undefined ? { revision } : { revision, name };
    const homes = options.purge === true ? [namespace, ...(await cluster.homes())] : [];
    const removed = await cluster.remove(options.purge === true ? undefined : owner);
    const purged = options.purge === true ? await cluster.purge(homes) : 0;
    if (options.dryRun !== true) await tellTags(new RevisionTags(api, namespace), revision, terminal);
    if (removed + purged === 0) terminal.say("there was nothing to remove");
    return 0;
  } finally {
    close();
  }
}

/** Names of the revision that is gone lead nowhere, or to what is left of it. */
async function tellTags(tags: RevisionTags, owner: string, terminal: Terminal): Promise<void> {
  for (const { tag, revision, namespaces } of await tags.list()) {
    if (tag === "" || revision !== owner) continue;
    terminal.say(`tag "${tag}" still leads to revision "${owner}" (namespaces: ${namespaces.join(", ") || "none"})`);
  }
}

/** The name of the IstioOperator that asks, among several of a revision. */
function ownerName({ values }: Resolved): string | undefined {
  return typeof values.ownerName === "string" && values.ownerName !== "" ? values.ownerName : undefined;
}

/** Asks a person; a program has to say it by -y. */
async function agreed(question: string, terminal: Terminal): Promise<boolean> {
  if (!terminal.isScreen) throw new MeshError("INSTALL_UNCONFIRMED", `${question} Say -y to go on.`);
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await asking.question(`${question} Go on? (y/N) `)).trim());
  } finally {
    asking.close();
  }
}
