/** `mizzen install`, `upgrade`, `uninstall` and `manifest generate`: the mesh in a cluster. */
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { Command } from "commander";
import { parseDuration } from "#lib/duration.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { EXIT, finish } from "./exit-codes.ts";
import type { Terminal } from "./terminal.ts";

interface Settings {
  readonly filename: readonly string[];
  readonly set: readonly string[];
  readonly revision: string;
  readonly namespace: string;
  readonly manifests?: string;
}

interface ClusterOptions {
  readonly kubeconfig?: string;
  readonly context?: string;
}

interface InstallOptions extends Settings, ClusterOptions {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly force?: boolean;
  readonly wait: boolean;
  readonly readinessTimeout: string;
}

interface UninstallOptions extends ClusterOptions {
  readonly yes?: boolean;
  readonly purge?: boolean;
  readonly revision: string;
  readonly namespace: string;
}

const PROFILES_HELP = `
Profiles (--set profile=NAME): default (control plane, ingress gateway), demo (both gateways, access logs, small), minimal
(control plane alone), empty (definitions of kinds alone). Values have the names of Istio's charts; manifests/chart/values.yaml lists them.`;

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
  return withCluster(command)
    .option("--revision <name>", "which installation", "")
    .option("-n, --namespace <name>", "where it is", "istio-system")
    .option("--purge", "all revisions, definitions of kinds with all objects of them, roots, and the namespace")
    .option("-y, --yes", "do not ask")
    .addHelpText(
      "after",
      `
Examples:
  mizzen uninstall -y
  mizzen uninstall --revision canary -y
  mizzen uninstall --purge -y            leaves nothing, VirtualServices and all other configuration included`,
    )
    .action((options: UninstallOptions) => finish(terminal, () => uninstall(options, terminal)));
}

export function manifestCommand(terminal: Terminal): Command {
  const generate = withSettings(new Command("generate").summary("print the objects of an installation"))
    .description("Prints what `mizzen install` would apply, as YAML.")
    .addHelpText(
      "after",
      `
Examples:
  mizzen manifest generate --set profile=demo | kubectl apply --server-side -f -
${PROFILES_HELP}`,
    )
    .action((options: Settings) => finish(terminal, () => printManifest(options, terminal)));
  return new Command("manifest").description("The objects of an installation, without a cluster.").addCommand(generate);
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function withSettings(command: Command): Command {
  const several = (value: string, before: readonly string[] = []) => [...before, value];
  return command
    .option("-f, --filename <file>", "values, or an IstioOperator; may be repeated", several, [])
    .option("-s, --set <name=value>", "one value; may be repeated", several, [])
    .option("-r, --revision <name>", "name of this control plane among several", "")
    .option("-n, --namespace <name>", "where it is installed", "istio-system")
    .option("-d, --manifests <folder>", "another folder with chart and profiles");
}

function withCluster(command: Command): Command {
  return command
    .option("-c, --kubeconfig <file>", "Kubernetes configuration file")
    .option("--context <name>", "context in it");
}

async function manifestFor(options: Settings, terminal: Terminal) {
  const { manifestOf } = await import("#install/manifest.ts");
  const { filename: files, set, revision, namespace } = options;
  const manifests = options.manifests ?? join(terminal.program, "../../manifests");
  return manifestOf({ manifests, namespace, revision, files, set });
}

async function printManifest(options: Settings, terminal: Terminal): Promise<number> {
  const { dump } = await import("js-yaml");
  for (const object of await manifestFor(options, terminal)) terminal.print(`---\n${dump(object, { noRefs: true })}`);
  return 0;
}

async function clusterOf({ kubeconfig, context }: ClusterOptions, terminal: Terminal) {
  const { KubernetesApi } = await import("#lib/kubernetes/api-client.ts");
  const { readKubeConfig } = await import("#lib/kubernetes/kube-config.ts");
  const { InstallCluster } = await import("#install/cluster.ts");
  const { env } = terminal;
  const usual = env.KUBECONFIG?.split(":").filter((file) => file !== "") ?? [];
  const fallback = usual.length > 0 ? usual : [join(env.HOME ?? homedir(), ".kube/config")];
  const files = kubeconfig === undefined ? fallback : [kubeconfig];
  const api = new KubernetesApi(await readKubeConfig({ files, context, environment: env }));
  return { cluster: new InstallCluster(api), server: api.access.server, close: () => api.close() };
}

async function install(options: InstallOptions, verb: "install" | "upgrade", terminal: Terminal): Promise<number> {
  const timeoutMs = parseDuration(options.readinessTimeout);
  if (timeoutMs === undefined) {
    throw new MeshError("INSTALL_INVALID", `--readiness-timeout: "${options.readinessTimeout}" is no duration`);
  }
  const objects = await manifestFor(options, terminal);
  if (options.dryRun === true) return printManifest(options, terminal);
  const { cluster, server, close } = await clusterOf(options, terminal);
  try {
    const owner = options.revision || "default";
    const obstacles = await cluster.obstacles(objects, owner);
    for (const line of obstacles) terminal.say(`in the way: ${line}`);
    if (obstacles.length > 0 && options.force !== true) {
      throw new MeshError("INSTALL_BLOCKED", "nothing was changed; --force goes on in spite of it");
    }
    const question = `This will ${verb} ${objects.length} objects of revision "${owner}" in ${options.namespace} of ${server}.`;
    if (options.yes !== true && !(await agreed(question, terminal))) return EXIT.interrupted;
    const say = (line: string) => terminal.say(line);
    await cluster.apply(objects, say);
    await cluster.prune(objects, owner, say);
    const signal = AbortSignal.any([]);
    if (options.wait) await cluster.untilReady(objects, { timeoutMs, say, signal });
    terminal.say(`${verb === "install" ? "installed" : "upgraded"}: revision "${owner}" in ${options.namespace}`);
    return 0;
  } finally {
    close();
  }
}

async function uninstall(options: UninstallOptions, terminal: Terminal): Promise<number> {
  const { cluster, server, close } = await clusterOf(options, terminal);
  try {
    const owner = options.revision || "default";
    const what =
      options.purge === true ? "everything of the mesh, all of its configuration included," : `revision "${owner}"`;
    if (options.yes !== true && !(await agreed(`This will remove ${what} from ${server}.`, terminal))) {
      return EXIT.interrupted;
    }
    const say = (line: string) => terminal.say(line);
    const removed = await cluster.remove(options.purge === true ? undefined : owner, say);
    if (options.purge === true) await cluster.purge(options.namespace, say);
    if (removed === 0) terminal.say("there was nothing to remove");
    return 0;
  } finally {
    close();
  }
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
