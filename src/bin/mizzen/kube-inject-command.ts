/** `mizzen kube-inject`: proxies put into workloads of files, for clusters whose webhook does not. */
import { readFile, writeFile } from "node:fs/promises";
import { text as readStream } from "node:stream/consumers";
import { Command } from "commander";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { finish } from "./exit-codes.ts";
import type { Terminal } from "./terminal.ts";

interface KubeInjectOptions {
  readonly filename: string;
  readonly output?: string;
  readonly meshConfigFile?: string;
  readonly valuesFile?: string;
  readonly injectConfigFile?: string;
  readonly operatorFileName?: string;
  readonly revision?: string;
}

const HELP = `
Examples:
  mizzen kube-inject -f deployment.yaml | kubectl apply -f -
  kubectl get deployment web -o yaml | mizzen kube-inject -f - | kubectl apply -f -

  with the settings of a cluster:
  kubectl -n istio-system get cm istio -o jsonpath='{.data.mesh}' > mesh.yaml
  kubectl -n istio-system get cm istio-sidecar-injector -o jsonpath='{.data.config}' > inject.yaml
  kubectl -n istio-system get cm istio-sidecar-injector -o jsonpath='{.data.values}' > values.json
  mizzen kube-inject -f web.yaml --meshConfigFile mesh.yaml --injectConfigFile inject.yaml --valuesFile values.json

ENABLE_NATIVE_SIDECARS=true puts the proxy among the init containers, as nodes from Kubernetes 1.33 on run it.`;

export function kubeInjectCommand(terminal: Terminal): Command {
  return new Command("kube-inject")
    .summary("put proxies into Kubernetes workloads")
    .description(
      "Writes the objects of a file with proxies in their pods: Deployments, StatefulSets, DaemonSets, Jobs, CronJobs, ReplicaSets, ReplicationControllers, DeploymentConfigs, Pods and Lists. Other objects stay as they are.",
    )
    .requiredOption("-f, --filename <file>", "file to read; - is standard input")
    .option("-o, --output <file>", "file to write; standard output without it")
    .option("--meshConfigFile <file>", "mesh config; Istio's defaults without it")
    .option("--valuesFile <file>", "values of the installation; those of a plain one without it")
    .option("--injectConfigFile <file>", "injection configuration or a single template; ours without it")
    .option(
      "--operatorFileName <file>",
      "IstioOperator whose values and mesh config count more than those of the files",
    )
    .option("-r, --revision <name>", "revision of the control plane")
    .addHelpText("after", HELP)
    .action((options: KubeInjectOptions) => finish(terminal, () => kubeInject(options, terminal)));
}

async function kubeInject(options: KubeInjectOptions, terminal: Terminal): Promise<number> {
  const { injectDocuments } = await import("#inject/inject-documents.ts");
  const { injectorFrom } = await import("#inject/inject-settings.ts");
  const { InjectionError } = await import("#inject/injection-error.ts");
  const input = options.filename === "-" ? await readStream(process.stdin) : await textOf(options.filename);
  const settings = {
    meshConfig: await textOf(options.meshConfigFile),
    values: await textOf(options.valuesFile),
    injectConfig: await textOf(options.injectConfigFile),
    operator: await textOf(options.operatorFileName),
    revision: options.revision,
  };
  try {
    const nativeSidecars = terminal.env.ENABLE_NATIVE_SIDECARS === "true";
    const { text, warnings } = injectDocuments(input ?? "", { injector: injectorFrom(settings), nativeSidecars });
    if (options.output === undefined) terminal.print(text);
    else await writeFile(options.output, text);
    for (const warning of warnings) terminal.say(warning);
    return 0;
  } catch (thrown) {
    if (!(thrown instanceof InjectionError)) throw thrown;
    throw new MeshError("INJECTION_FAILED", `Cannot inject into ${options.filename}: ${thrown.message}`);
  }
}

async function textOf(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  try {
    return await readFile(path, "utf8");
  } catch (thrown) {
    throw new MeshError("CONFIG_UNREADABLE", `Cannot read ${path}: ${errorText(thrown)}`, { cause: thrown });
  }
}
