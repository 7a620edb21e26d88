/** `mizzen kube-inject`: proxies put into workloads of files, for clusters whose webhook does not. */
import { readFile, writeFile } from "node:fs/promises";
import { text as readStream } from "node:stream/consumers";
import { Command, Option } from "commander";
import type { InjectionSettings } from "#inject/injector/inject-settings.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { clusterOf, withCluster } from "../cluster/install-options.ts";
import { finish } from "../terminal/exit-codes.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { hasCluster, INJECT_CONFIG_MAP, type InjectionPlace, MESH_CONFIG_MAP } from "./cluster-injection.ts";

interface KubeInjectOptions extends InjectionPlace {
  readonly filename: string;
  readonly output?: string;
  readonly meshConfigFile?: string;
  readonly valuesFile?: string;
  readonly injectConfigFile?: string;
  readonly operatorFileName?: string;
}

const HELP = `
Examples:
  mizzen kube-inject -f deployment.yaml | kubectl apply -f -
  kubectl get deployment web -o yaml | mizzen kube-inject -f - | kubectl apply -f -

  without a cluster, with settings that one had:
  kubectl -n istio-system get cm istio -o jsonpath='{.data.mesh}' > mesh.yaml
  kubectl -n istio-system get cm istio-sidecar-injector -o jsonpath='{.data.config}' > inject.yaml
  kubectl -n istio-system get cm istio-sidecar-injector -o jsonpath='{.data.values}' > values.json
  mizzen kube-inject -f web.yaml --meshConfigFile mesh.yaml --injectConfigFile inject.yaml --valuesFile values.json

What files do not say comes from the ConfigMaps of the cluster that a kubeconfig names; where there is none, Istio's defaults hold.
ENABLE_NATIVE_SIDECARS=true puts the proxy among the init containers, as nodes from Kubernetes 1.33 on run it.`;

export function kubeInjectCommand(terminal: Terminal): Command {
  const command = new Command("kube-inject")
    .summary("put proxies into Kubernetes workloads")
    .description(
      "Writes the objects of a file with proxies in their pods: Deployments, StatefulSets, DaemonSets, Jobs, CronJobs, ReplicaSets, ReplicationControllers, DeploymentConfigs, Pods and Lists. Other objects stay as they are.",
    )
    .requiredOption("-f, --filename <file>", "file to read; - is standard input")
    .option("-o, --output <file>", "file to write; standard output without it")
    .option("--meshConfigFile <file>", "mesh config")
    .option("--valuesFile <file>", "values of the installation")
    .option("--injectConfigFile <file>", "injection configuration, or a single template")
    .option(
      "--operatorFileName <file>",
      "IstioOperator whose values and mesh config count more than those of files and cluster",
    )
    .option("-r, --revision <name>", "revision of the control plane")
    .option("--meshConfigMapName <name>", "ConfigMap with the mesh config", MESH_CONFIG_MAP)
    .option("--injectConfigMapName <name>", "ConfigMap with values and injection configuration", INJECT_CONFIG_MAP)
    .option("-i, --istioNamespace <name>", "namespace of these", "istio-system")
    // Istio names by it what it looks for in vain.
    .addOption(new Option("--webhookConfig <name>", "has no effect").hideHelp());
  return withCluster(command)
    .addHelpText("after", HELP)
    .action((options: KubeInjectOptions) => finish(terminal, () => kubeInject(options, terminal)));
}

async function kubeInject(options: KubeInjectOptions, terminal: Terminal): Promise<number> {
  const { injectDocuments } = await import("#inject/inject-documents.ts");
  const { injectorFrom } = await import("#inject/injector/inject-settings.ts");
  const input = options.filename === "-" ? await readStream(process.stdin) : await textOf(options.filename);
  const { meshConfigFile, valuesFile, injectConfigFile, operatorFileName } = options;
  const files = [meshConfigFile, valuesFile, injectConfigFile, operatorFileName].filter((file) => file !== undefined);
  const inject = await attempted(`Cannot use the settings of injection (${files.join(", ") || "none"})`, async () => {
    const { settings, ...others } = await settingsOf(options, terminal);
    return { injector: injectorFrom(settings), ...others };
  });
  const attempt = `Cannot inject into ${options.filename}`;
  const { text, warnings } = await attempted(attempt, async () => injectDocuments(input ?? "", inject));
  if (options.output === undefined) terminal.print(text);
  else await write(options.output, text);
  for (const warning of warnings) terminal.say(warning);
  return 0;
}

/** What went wrong with injection, after what was attempted. */
async function attempted<T>(attempt: string, body: () => Promise<T>): Promise<T> {
  const { InjectionError } = await import("#inject/injector/injection-error.ts");
  try {
    return await body();
  } catch (thrown) {
    if (!(thrown instanceof InjectionError)) throw thrown;
    throw new MeshError("INJECTION_FAILED", `${attempt}: ${thrown.message}`);
  }
}

async function write(path: string, text: string): Promise<void> {
  try {
    await writeFile(path, text);
  } catch (cause) {
    throw new MeshError("INJECTION_FAILED", `Cannot write ${path}`, { cause });
  }
}

/** Files count more than the cluster; with a template from a file, its nodes do not matter either. */
async function settingsOf(options: KubeInjectOptions, terminal: Terminal) {
  const { setsMeshConfig } = await import("#inject/injector/inject-settings.ts");
  const { nativeSidecarsOf, proxyConfigsOf, settingsOfCluster } = await import("./cluster-injection.ts");
  const given: InjectionSettings = {
    meshConfig: await textOf(options.meshConfigFile),
    values: await textOf(options.valuesFile),
    injectConfig: await textOf(options.injectConfigFile),
    operator: await textOf(options.operatorFileName),
    revision: options.revision,
  };
  const mode = terminal.env.ENABLE_NATIVE_SIDECARS;
  const ofFiles = { settings: given, nativeSidecars: mode === "true" };
  const { meshConfig, values, injectConfig, operator } = given;
  const isComplete =
    injectConfig !== undefined &&
    (meshConfig !== undefined || setsMeshConfig(operator)) &&
    (values !== undefined || operator !== undefined);
  if (isComplete || !hasCluster(options, terminal)) return ofFiles;
  const { api, close } = await clusterOf(options, terminal);
  try {
    const settings = await settingsOfCluster(api, options, given);
    if (injectConfig !== undefined) return { ...ofFiles, settings };
    const nodes = mode === "true" || mode === "false" ? mode : "auto";
    return { settings, nativeSidecars: await nativeSidecarsOf(api, nodes), proxyConfigs: await proxyConfigsOf(api) };
  } finally {
    close();
  }
}

async function textOf(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  try {
    return await readFile(path, "utf8");
  } catch (thrown) {
    throw new MeshError("CONFIG_UNREADABLE", `Cannot read ${path}`, { cause: thrown });
  }
}
