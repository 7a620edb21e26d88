/** `mizzen tag`: second names for control planes, as istioctl has them. */
import { createInterface } from "node:readline/promises";
import { Command, Option } from "commander";
import type { TagDescription } from "#install/revision-tags.ts";
import type { TagRequest } from "#install/tag-objects.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { formatGoTable } from "#lib/print/go-table.ts";
import { type ClusterOptions, clusterOf, manifestsOf, withCluster, withManifests } from "../cluster/install-options.ts";
import { finish } from "../terminal/exit-codes.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface TagOptions extends ClusterOptions {
  readonly istioNamespace: string;
}

interface SetOptions extends TagOptions {
  readonly revision: string;
  readonly webhookName?: string;
  readonly manifests?: string;
  readonly overwrite?: boolean;
  readonly skipConfirmation?: boolean;
  readonly autoInjectNamespaces?: boolean;
}

const FORMATS = ["table", "json", "yaml"] as const;

export function tagCommand(terminal: Terminal): Command {
  const group = new Command("tag")
    .summary("second names for control planes")
    .description(
      "Tags are names for revisions that can be pointed elsewhere: a namespace says `istio.io/rev=prod`, and which control plane that is, is changed in one place.",
    )
    .addHelpText(
      "after",
      `
Examples:
  mizzen tag set prod --revision 1-8-0
  mizzen tag list
  mizzen tag remove prod`,
    );
  const commands = [setCommand, generateCommand, listCommand, removeCommand];
  for (const make of commands) group.addCommand(make(terminal));
  return group;
}

function setCommand(terminal: Terminal): Command {
  return setting("set", terminal)
    .summary("create or change a tag")
    .description("Makes a name lead to a revision. The tag `default` is for all that name none.")
    .addHelpText(
      "after",
      `
Examples:
  mizzen tag set prod --revision 1-8-0
  kubectl label namespace shop istio.io/rev=prod
  mizzen tag set prod --revision 1-8-1 --overwrite
  mizzen tag set default --revision 1-8-1             injects istio-injection=enabled, checks what names no revision`,
    );
}

function generateCommand(terminal: Terminal): Command {
  return setting("generate", terminal)
    .summary("print the objects of a tag")
    .description("Prints what `mizzen tag set` would apply, as YAML.")
    .addHelpText("after", "\nExamples:\n  mizzen tag generate prod --revision 1-8-0 > tag.yaml");
}

function setting(name: "set" | "generate", terminal: Terminal): Command {
  const command = new Command(name)
    .argument("<tag>", "name")
    .requiredOption("-r, --revision <name>", "the control plane that it leads to")
    .option("--overwrite", "change a tag that is there already")
    .option("-y, --skip-confirmation", "do not ask, and do not tell of conflicts")
    .option("--webhook-name <name>", "of the webhook configuration, instead of istio-revision-tag-TAG")
    .option("--auto-inject-namespaces", "tag default: inject into namespaces without a label too");
  return ofCluster(withManifests(command)).action((tag: string, options: SetOptions) =>
    finish(terminal, () => setTag({ ...options, tag, onlyPrint: name === "generate" }, terminal)),
  );
}

function listCommand(terminal: Terminal): Command {
  const command = new Command("list")
    .alias("show")
    .summary("list tags")
    .description("Lists tags, the revisions they lead to, and the namespaces that name them.")
    .addOption(new Option("-o, --output <format>", "form").choices(FORMATS).default("table"))
    .addHelpText("after", "\nExamples:\n  mizzen tag list\n  mizzen tag list -o json");
  return ofCluster(command).action((options: TagOptions & { readonly output: (typeof FORMATS)[number] }) =>
    finish(terminal, () =>
      withTags(options, terminal, async (tags) => {
        terminal.print(await formatTags(await tags.list(), options.output));
        return 0;
      }),
    ),
  );
}

function removeCommand(terminal: Terminal): Command {
  const command = new Command("remove")
    .alias("delete")
    .summary("remove a tag")
    .description(
      "Removes a tag. Namespaces that still name it are not injected any more: `mizzen tag list` shows them.",
    )
    .argument("<tag>", "name")
    .option("-y, --skip-confirmation", "do not ask")
    .addHelpText("after", "\nExamples:\n  mizzen tag remove prod");
  return ofCluster(command).action((tag: string, options: TagOptions & { readonly skipConfirmation?: boolean }) =>
    finish(terminal, () => removeTag(tag, options, terminal)),
  );
}

function ofCluster(command: Command): Command {
  return withCluster(command).option("-i, --istioNamespace <name>", "where the control planes are", "istio-system");
}

async function setTag(
  options: SetOptions & { readonly tag: string; readonly onlyPrint: boolean },
  terminal: Terminal,
): Promise<number> {
  const { tag, revision, istioNamespace: namespace, webhookName, onlyPrint } = options;
  const { readChart } = await import("#install/chart.ts");
  const chart = await readChart(`${manifestsOf(options, terminal)}/chart`);
  const request: TagRequest = {
    tag,
    revision,
    namespace,
    webhookName,
    allNamespaces: options.autoInjectNamespaces === true,
  };
  return withTags(options, terminal, async (tags, cluster) => {
    const check = { overwrite: options.overwrite === true, onlyPrint };
    const objects = await tags.objects(request, chart, check);
    const conflicts = options.skipConfirmation === true ? [] : await tags.conflicts(objects, request, check);
    if (conflicts.length > 0) {
      terminal.say(`creating tag would conflict, pass --skip-confirmation to proceed:\n${conflicts.join("\n")}\n`);
      if (!onlyPrint && !(await confirmed("Apply anyways? [y/N]", terminal))) return 0;
    }
    if (onlyPrint) {
      const { formatYaml } = await import("#inject/yaml/yaml-output.ts");
      terminal.print(objects.map(formatYaml).join("\n---\n"));
      return 0;
    }
    if (tag === "default") await tags.deactivateDefault();
    await cluster.apply(objects);
    terminal.print(`Revision tag "${tag}" created, referencing control plane revision "${revision}". To enable injection using this
revision tag, use 'kubectl label namespace <NAMESPACE> istio.io/rev=${tag}'\n`);
    return 0;
  });
}

async function removeTag(
  tag: string,
  options: TagOptions & { readonly skipConfirmation?: boolean },
  terminal: Terminal,
): Promise<number> {
  return withTags(options, terminal, async (tags) => {
    if (!(await tags.isThere(tag)))
      throw new MeshError(
        "TAG_REFUSED",
        `cannot remove tag "${tag}": cannot find MutatingWebhookConfiguration or Service for tag`,
      );
    const namespaces = await tags.namespaces(tag);
    const caution = `Caution, found ${namespaces.length} namespace(s) still injected by tag "${tag}": ${namespaces.join(" ")}`;
    const mayRemove =
      namespaces.length === 0 ||
      options.skipConfirmation === true ||
      (await confirmed(`${caution}\nProceed with operation? [y/N]`, terminal));
    if (mayRemove) await tags.remove(tag);
    terminal.print(mayRemove ? `Revision tag ${tag} removed\n` : "Aborting operation.\n");
    return 0;
  });
}

async function withTags(
  options: TagOptions,
  terminal: Terminal,
  work: (
    tags: import("#install/revision-tags.ts").RevisionTags,
    cluster: import("#install/cluster.ts").InstallCluster,
  ) => Promise<number>,
): Promise<number> {
  const { RevisionTags } = await import("#install/revision-tags.ts");
  const { api, cluster, close } = await clusterOf(options, { ...terminal, say: () => undefined });
  try {
    return await work(new RevisionTags(api, options.istioNamespace), cluster);
  } finally {
    close();
  }
}

async function formatTags(tags: readonly TagDescription[], format: (typeof FORMATS)[number]): Promise<string> {
  if (tags.length === 0) return "No Istio revision tags found.\n";
  if (format === "json") return `${JSON.stringify(tags, undefined, "\t")}\n`;
  if (format === "yaml") {
    const { formatYaml } = await import("#inject/yaml/yaml-output.ts");
    return `${formatYaml(tags)}\n`;
  }
  const rows = tags.map(({ tag, revision, namespaces }) => [tag, revision, namespaces.join(",")]);
  return formatGoTable([["TAG", "REVISION", "NAMESPACES"], ...rows], 1);
}

/** Asks whoever is at the other end of standard input; no answer is no. */
async function confirmed(question: string, terminal: Terminal): Promise<boolean> {
  terminal.print(`${question} `);
  const asking = createInterface({ input: process.stdin });
  try {
    for await (const line of asking) return /^y(es)?$/i.test(line.trim());
    return false;
  } finally {
    asking.close();
  }
}
