/** Workloads as configuration tells of them, whoever runs them. */

import type { Service } from "#config/kinds/service/schema.ts";
import type { WorkloadEntry } from "#config/kinds/workload-entry/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { hasLabels } from "#model/labels/labels.ts";

/** What selects, identifies and protects a workload. */
export interface KnownWorkload {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly serviceAccount: string;
  readonly proxy: "sidecar" | "router" | "none";
}

/** A port of a service that leads to a workload. */
export interface KnownPort {
  readonly service: ConfigObject<Service>;
  readonly port: number;
  readonly targetPort: number;
  readonly isHttp: boolean;
}

type Json = Readonly<Record<string, unknown>>;

/** The workload that a document of Kubernetes describes; undefined for all others. */
export function workloadOfDocument(document: unknown): KnownWorkload | undefined {
  const { kind, metadata, spec } = record(document);
  const { name, namespace = "default" } = record(metadata);
  if (typeof name !== "string" || typeof namespace !== "string") return undefined;
  if (kind === "Pod") return ofPod({ name, namespace }, record(metadata), record(spec));
  const template = record(record(spec).template);
  if (!["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"].includes(String(kind))) return undefined;
  return ofPod({ name, namespace }, record(template.metadata), record(template.spec));
}

/** The workload that a WorkloadEntry describes. */
export function workloadOfEntry({ metadata, spec }: ConfigObject<WorkloadEntry>): KnownWorkload {
  const { name, namespace } = metadata;
  const { labels = {}, serviceAccount = "default" } = spec;
  return { name, namespace, labels, serviceAccount: serviceAccount || "default", proxy: "sidecar" };
}

/** The ports of services that lead to a workload. */
export function portsOf(workload: KnownWorkload, services: readonly ConfigObject<Service>[]): readonly KnownPort[] {
  return services
    .filter(({ metadata, spec: { selector = {} } }) => {
      const selects = Object.keys(selector).length > 0 && hasLabels(workload.labels, selector);
      return metadata.namespace === workload.namespace && selects;
    })
    .flatMap((service) =>
      (service.spec.ports ?? []).map(({ port, targetPort, name = "", appProtocol = "", protocol = "TCP" }) => ({
        service,
        port,
        targetPort: typeof targetPort === "number" && targetPort > 0 ? targetPort : port,
        isHttp: protocol === "TCP" && isHttpName(appProtocol || name),
      })),
    );
}

/** A protocol that is not declared is taken for HTTP here: that is what people mean when they speak of requests. */
function isHttpName(name: string): boolean {
  const [declared = ""] = name.toLowerCase().split("-");
  return !["tcp", "tls", "https", "mongo", "mysql", "redis", "udp"].includes(declared);
}

function ofPod(owner: Pick<KnownWorkload, "name" | "namespace">, metadata: Json, spec: Json): KnownWorkload {
  const labels = Object.fromEntries(
    Object.entries(record(metadata.labels)).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
  const { serviceAccountName: account } = spec;
  const isOut = String(labels["sidecar.istio.io/inject"] ?? record(metadata.annotations)["sidecar.istio.io/inject"]);
  return {
    ...owner,
    labels,
    serviceAccount: typeof account === "string" && account !== "" ? account : "default",
    proxy: isOut === "false" ? "none" : "sidecar",
  };
}

function record(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}
