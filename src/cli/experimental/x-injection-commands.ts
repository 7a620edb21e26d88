/** `mizzen x check-inject` and `mizzen x injector`: who injects, and why a pod is injected or not. */
import { Command, Option } from "commander";
import { injectionValues } from "#inject/injector/values.ts";
import { REVISION } from "#inject/pod/names.ts";
import { type HookRow, hookRows, injectableNamespaces, revisionRows } from "#inject/webhook/injection-overview.ts";
import { matchWebhooks, type WebhookConfiguration } from "#inject/webhook/webhook-match.ts";
import type { KubernetesApi, RawObject } from "#lib/kubernetes/api-client.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { formatOutput, OUTPUT_FORMATS, type OutputFormat } from "#lib/print/output.ts";
import { type ClusterOptions, clusterOf, withCluster } from "../cluster/install-options.ts";
import { namedPod } from "../cluster/named-pod.ts";
import { finish } from "../terminal/exit-codes.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { formatHookRows, formatRevisionRows, formatWebhookMatches } from "./injection-tables.ts";

interface LookOptions extends ClusterOptions {
  readonly namespace?: string;
  readonly output?: OutputFormat;
}

interface CheckOptions extends LookOptions {
  readonly labels?: string;
}

type Api = Pick<KubernetesApi, "call">;
type Labels = Readonly<Record<string, string>>;

const HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/** `mizzen x check-inject`. */
export function checkInjectCommand(terminal: Terminal): Command {
  const command = new Command("check-inject")
    .argument("[pod]", "[TYPE/]NAME[.NAMESPACE]: a pod, or what selects pods")
    .summary("why a pod is injected, or not")
    .description("Shows which webhooks of a cluster would inject into a pod, and by which label, or why not.")
    .option("-l, --labels <labels>", "of a pod that there is not yet: a=b,c=d");
  return looking(command)
    .addHelpText(
      "after",
      `
Examples:
  mizzen x check-inject details-v1-fcff6c49c-kqnfk.test
  mizzen x check-inject deployment/details-v1 -n test
  mizzen x check-inject -n test -l app=helloworld,version=v1`,
    )
    .action((pod: string | undefined, options: CheckOptions) =>
      finish(terminal, () => checkInject(pod, options, terminal)),
    );
}

const INJECTOR_HELP = `
Examples:
  mizzen x injector list
  mizzen x injector list -n shop -o json`;

/** `mizzen x injector`. */
export function injectorCommand(terminal: Terminal): Command {
  const list = new Command("list")
    .description("Lists the revisions that inject into namespaces, those that pods have, and the images of proxies.")
    .option("-i, --istioNamespace <name>", "where the control planes are", "istio-system")
    .addHelpText("after", INJECTOR_HELP);
  return new Command("injector")
    .description("Who injects into which namespaces.")
    .addHelpText("after", INJECTOR_HELP)
    .addCommand(
      looking(list).action((options: LookOptions & { readonly istioNamespace: string }) =>
        finish(terminal, () => listInjectors(options, terminal)),
      ),
    );
}

function looking(command: Command): Command {
  return withCluster(command)
    .option("-n, --namespace <name>", "which namespace")
    .addOption(new Option("-o, --output <format>", "instead of tables").choices(OUTPUT_FORMATS));
}

async function checkInject(name: string | undefined, options: CheckOptions, terminal: Terminal): Promise<number> {
  if (name === undefined && !options.labels)
    throw new MeshError("POD_UNKNOWN", "check-inject needs [TYPE/]NAME[.NAMESPACE], or labels by -l");
  const { api, namespace: usual, close } = await clusterOf(options, terminal);
  try {
    const namespace = options.namespace ?? usual;
    const pod = name === undefined ? undefined : await namedPod(api, name, namespace);
    const labels = pod === undefined ? labelsOf(options.labels ?? "") : (pod.metadata.labels ?? {});
    const home = await api.call({ path: `/api/v1/namespaces/${pod?.metadata.namespace ?? namespace}` });
    const matches = matchWebhooks(await hooksOf(api), labels, home.metadata.labels ?? {});
    const { output, style } = { ...options, ...terminal };
    terminal.print(output === undefined ? formatWebhookMatches(matches, style) : formatOutput(matches, output));
    return 0;
  } finally {
    close();
  }
}

async function listInjectors(
  options: LookOptions & { readonly istioNamespace: string },
  terminal: Terminal,
): Promise<number> {
  const { api, close } = await clusterOf(options, terminal);
  try {
    const all = injectableNamespaces(await listOf(api, "/api/v1/namespaces"), options.istioNamespace);
    const named = all.filter(({ metadata }) => metadata.name === options.namespace);
    const namespaces = named.length > 0 ? named : all;
    const hooks = await hooksOf(api, "app=sidecar-injector");
    const revisions = revisionRows(namespaces, hooks, await listOf(api, "/api/v1/pods"));
    const injectors = hookRows(namespaces, hooks, await proxyImages(api));
    terminal.print(
      options.output === undefined
        ? `${formatRevisionRows(revisions)}\n${formatHookRows(injectors)}`
        : formatOutput({ namespaces: revisions, injectors: injectors.map(plain) }, options.output),
    );
    return 0;
  } finally {
    close();
  }
}

function plain({ namespace, ...row }: HookRow): object {
  return namespace === undefined ? row : { namespace, ...row };
}

/** The image of the proxies that each revision injects, by its settings. */
async function proxyImages(api: Api): Promise<ReadonlyMap<string, string>> {
  const images = new Map<string, string>();
  for (const { metadata, data } of await listOf(api, "/api/v1/configmaps", REVISION)) {
    const { values } = (data ?? {}) as Labels;
    if (values !== undefined) images.set(metadata.labels?.[REVISION] ?? "", imageOf(values));
  }
  return images;
}

function imageOf(text: string): string {
  try {
    const { hub, proxyImage, tag } = injectionValues(JSON.parse(text));
    return proxyImage.includes("/") ? proxyImage : `${hub}/${proxyImage}:${tag}`;
  } catch {
    // Values that nobody can read belong to no installation that works.
    return "";
  }
}

async function hooksOf(api: Api, labelSelector?: string): Promise<readonly WebhookConfiguration[]> {
  return (await listOf(api, HOOKS, labelSelector)) as readonly (RawObject & WebhookConfiguration)[];
}

async function listOf(api: Api, path: string, labelSelector?: string): Promise<readonly RawObject[]> {
  const query = labelSelector === undefined ? {} : { labelSelector };
  return (await api.call<{ readonly items: readonly RawObject[] }>({ path, query })).items;
}

function labelsOf(text: string): Labels {
  const pairs = text.split(",").map((pair) => /^([^=!,\s]+)=?=([^=,\s]*)$/.exec(pair.trim()));
  const wrong = pairs.indexOf(null);
  if (wrong >= 0) throw new MeshError("POD_UNKNOWN", `-l ${text}: "${text.split(",")[wrong]}" is not of the form a=b`);
  return Object.fromEntries(pairs.map((match) => [match?.[1] ?? "", match?.[2] ?? ""]));
}
