/** What the commands about installations have in common: their settings, and the cluster that they are about. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import type { Resolved } from "#install/settings.ts";
import type { Terminal } from "../terminal/terminal.ts";

export interface Settings {
  readonly filename: readonly string[];
  readonly set: readonly string[];
  readonly revision: string;
  readonly namespace?: string;
  readonly istioNamespace?: string;
  readonly manifests?: string;
}

export interface ClusterOptions {
  readonly kubeconfig?: string;
  readonly context?: string;
}

export const PROFILES_HELP = `
Profiles (--set profile=NAME): default (control plane, ingress gateway), demo (both gateways, access logs, small), minimal
(control plane alone), empty (definitions of kinds alone). Values have the names of Istio's charts; manifests/chart/values.yaml lists them.`;

/** Options that say what is installed. */
export function withSettings(command: Command): Command {
  const several = (value: string, before: readonly string[] = []) => [...before, value];
  return withManifests(command)
    .option("-f, --filename <file>", "values, or an IstioOperator; - is standard input; may be repeated", several, [])
    .option("-s, --set <name=value>", "one value; may be repeated", several, [])
    .option("-r, --revision <name>", "name of this control plane among several", "")
    .option("-n, --namespace <name>", "where it is installed (default: istio-system)")
    .option("-i, --istioNamespace <name>", "the same");
}

/** The option that says where the chart is. */
export function withManifests(command: Command): Command {
  return command.option("-d, --manifests <folder>", "another folder with chart and profiles");
}

/** Options that say which cluster. */
export function withCluster(command: Command): Command {
  return command
    .option("-c, --kubeconfig <file>", "Kubernetes configuration file")
    .option("--context <name>", "context in it");
}

/** The folder with chart and profiles. */
export function manifestsOf({ manifests }: Pick<Settings, "manifests">, terminal: Terminal): string {
  return manifests ?? join(terminal.program, "../../manifests");
}

/** The settings, checked; what has no effect is said. */
export async function resolved(options: Settings, terminal: Terminal): Promise<Resolved> {
  const { resolveSettings } = await import("#install/settings.ts");
  const { set, revision } = options;
  const files = options.filename.map((file) => (file === "-" ? "/dev/stdin" : file));
  const manifests = manifestsOf(options, terminal);
  const namespace = options.namespace ?? options.istioNamespace;
  const result = await resolveSettings({ manifests, namespace, revision, files, set });
  for (const line of result.warnings) terminal.say(`warning: ${line}`);
  return result;
}

/** Files that say which cluster, as kubectl looks for them. */
export function kubeConfigFiles({ kubeconfig }: ClusterOptions, { env }: Terminal): readonly string[] {
  if (kubeconfig !== undefined) return [kubeconfig];
  const named = env.KUBECONFIG?.split(":").filter((file) => file !== "") ?? [];
  if (named.length === 0) return [join(env.HOME ?? homedir(), ".kube/config")];
  // Some may be missing; where all are, the first one is complained about.
  const found = named.filter((file) => existsSync(file));
  return found.length > 0 ? found : named.slice(0, 1);
}

/** The API server that a kubeconfig names. Whoever asks for it closes it. */
export async function clusterOf(options: ClusterOptions & { readonly dryRun?: boolean }, terminal: Terminal) {
  const { KubernetesApi } = await import("#lib/kubernetes/api-client.ts");
  const { readKubeConfig } = await import("#lib/kubernetes/kube-config.ts");
  const { InstallCluster } = await import("#install/cluster.ts");
  const { PatientApi } = await import("#install/patient-api.ts");
  const access = { files: kubeConfigFiles(options, terminal), context: options.context, environment: terminal.env };
  const client = new KubernetesApi(await readKubeConfig(access));
  const say = (line: string) => terminal.say(line);
  const api = new PatientApi({ api: client, say });
  const { server, namespace } = client.access;
  const cluster = new InstallCluster(api, say, { removesNothing: options.dryRun === true });
  return { api, cluster, server, namespace, close: () => client.close() };
}
