/** `mizzen x mtls`: who speaks mutual TLS to whom, and who cannot talk at all. */
import { Command, Option } from "commander";
import { objectKey } from "#config/schema/config-object.ts";
import { acceptedBy, canTalk, type Decided, mtlsMatrix, mtlsReasons, type Pair, type Sends } from "#explain/mtls.ts";
import { type KnownPort, type KnownWorkload, portsOf } from "#explain/workloads.ts";
import { formatOutput, OUTPUT_FORMATS, type OutputFormat } from "#lib/print/output.ts";
import { formatTable } from "#lib/print/table.ts";
import { hasLabels } from "#model/labels/labels.ts";
import { namespaceMode } from "#translate/policies/peer-authentication.ts";
import { destinationRuleFor, selectingRules } from "#translate/scope/destination-rules.ts";
import { effectivePolicy } from "#translate/scope/traffic-policy.ts";
import { finish } from "../terminal/exit-codes.ts";
import { withChoice } from "../terminal/options.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { type FolderOptions, type MeshOfFiles, meshOfOptions, peerPolicies } from "./x-mesh.ts";

interface MtlsOptions extends FolderOptions {
  readonly output?: OutputFormat;
}

export function mtlsCommand(terminal: Terminal): Command {
  return withChoice(new Command("mtls"))
    .summary("show who speaks mutual TLS to whom")
    .description(
      "Shows what each workload sends to each port of the others and what these accept, with the object that decides each; pairs that cannot talk are marked by X.",
    )
    .option("-f, --file <folder>", "files with the configuration; without it a mesh that is up")
    .addOption(new Option("-o, --output <format>", "form of the output").choices(OUTPUT_FORMATS))
    .addHelpText("after", "\nExamples:\n  mizzen x mtls -f samples/bookinfo\n  mizzen x mtls --mesh bookinfo -o json")
    .action((options: MtlsOptions) =>
      finish(terminal, async () => {
        const mesh = await meshOfOptions(options);
        for (const problem of mesh.problems) terminal.say(`note: ${problem}`);
        const pairs = pairsOf(mesh);
        terminal.print(
          options.output === undefined
            ? `${formatTable(mtlsMatrix(pairs))}\n${formatTable(mtlsReasons(pairs))}`
            : formatOutput(pairs.map(plain), options.output),
        );
        return 0;
      }),
    );
}

function plain({ client, server, port, sends, accepts }: Pair): object {
  const nameOf = ({ name, namespace }: KnownWorkload) => `${name}.${namespace}`;
  const talks = canTalk(sends.value, accepts.value);
  return { client: nameOf(client), server: nameOf(server), port, sends, accepts, canTalk: talks };
}

function pairsOf(mesh: MeshOfFiles): readonly Pair[] {
  const { snapshot, workloads, services } = mesh;
  const policies = peerPolicies(snapshot);
  return workloads.flatMap((client) =>
    workloads
      .filter((server) => server.proxy !== "router")
      .flatMap((server) =>
        portsOf(server, services).map((port) => ({
          client,
          server,
          port: port.targetPort,
          sends: sentBy(mesh, { client, server, port }),
          accepts: acceptedBy(server, port.targetPort, policies),
        })),
      ),
  );
}

/** By the destination rule that the client is under; else mutual TLS to servers that can do it. */
function sentBy(
  { snapshot }: MeshOfFiles,
  {
    client,
    server,
    port,
  }: { readonly client: KnownWorkload; readonly server: KnownWorkload; readonly port: KnownPort },
): Decided<Sends> {
  if (client.proxy === "none") return { value: "plain", by: "no proxy" };
  const { name, namespace } = port.service.metadata;
  const hostname = `${name}.${namespace}.svc.${snapshot.features.domain}`;
  const service = snapshot.services.find((one) => one.hostname === hostname && one.namespace === namespace);
  if (service !== undefined) {
    const rule = destinationRuleFor(snapshot, service, {
      namespace: client.namespace,
      selectedRules: selectingRules(snapshot)
        .filter(({ spec }) => hasLabels(client.labels, spec.workloadSelector?.matchLabels ?? {}))
        .map(objectKey),
    });
    const { tls } = effectivePolicy(rule?.spec, port.port);
    if (rule !== undefined && tls !== undefined) {
      const value =
        tls.mode === "ISTIO_MUTUAL" ? "mTLS" : tls.mode === "SIMPLE" || tls.mode === "MUTUAL" ? "TLS" : "plain";
      return { value, by: objectKey(rule) };
    }
  }
  if (!snapshot.mesh.enableAutoMtls) return { value: "plain", by: "enableAutoMtls" };
  if (server.proxy === "none") return { value: "plain", by: "the server has no proxy" };
  return namespaceMode(snapshot, namespace) === "DISABLE"
    ? { value: "plain", by: `PeerAuthentication of namespace ${namespace}` }
    : { value: "mTLS", by: "auto mTLS" };
}
