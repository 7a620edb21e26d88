/**
 * A cluster as the data dumps it to a snapshot. Until there is a Kubernetes source, pods become WorkloadEntries, which
 * Services select by the same labels.
 */
import type { ConfigObject } from "#config/config-object.ts";
import { destinationRuleSchema } from "#config/kinds/destination-rule.ts";
import { serviceSchema } from "#config/kinds/service.ts";
import { sidecarSchema } from "#config/kinds/sidecar.ts";
import { virtualServiceSchema } from "#config/kinds/virtual-service.ts";
import type { MeshConfig } from "#config/mesh-config.ts";
import { parseObject } from "#config/parse-object.ts";
import type { Schema } from "#config/schema/message.ts";
import { parse } from "#config/schema/parse.ts";
import { buildSnapshot } from "#convert/snapshot.ts";
import { DEFAULT_FEATURES, type Features } from "#model/features.ts";
import type { Snapshot } from "#model/snapshot.ts";

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

interface Pod extends KubernetesObject {
  readonly spec: {
    readonly nodeName?: string;
    readonly serviceAccountName?: string;
    readonly containers?: readonly { readonly ports?: readonly ContainerPort[] }[];
  };
  readonly status?: { readonly podIP?: string };
}

interface ContainerPort {
  readonly name?: string;
  readonly containerPort: number;
}

export interface MeshInput {
  readonly objects: readonly KubernetesObject[];
  readonly mesh: MeshConfig;
  readonly features?: Features;
}

/** Kinds that say how the cluster is built; what matters of them is in the entries made of pods. */
const CLUSTER_KINDS: ReadonlySet<string> = new Set(["Namespace", "Node", "Pod", "EndpointSlice"]);

/** A snapshot, or why the objects cannot make one yet. */
export function kubernetesMesh(input: MeshInput): Snapshot | { readonly leftOut: string } {
  const { objects, mesh, features = DEFAULT_FEATURES } = input;
  const parsed: ConfigObject[] = [];
  const kinds = new Set(objects.map(({ kind }) => kind));
  if (kinds.has("EndpointSlice") && !kinds.has("Pod")) return { leftOut: "EndpointSlices have no effect yet" };
  if (objects.some(isInternal)) return { leftOut: "Gateways made from the Gateway API have no effect yet" };
  for (const raw of [...objects.filter((one) => !CLUSTER_KINDS.has(one.kind)), ...workloadEntries(objects)]) {
    const { object, problems, notYet, key } = parseObject(raw);
    if (notYet) return { leftOut: `${raw.kind} of ${raw.apiVersion.split("/")[0]} has no effect yet` };
    const read = object ?? unchecked(raw);
    if (read === undefined) throw new Error(`${key}: ${JSON.stringify(problems)}`);
    // Tests put objects into no namespace at all; in YAML that means the default one.
    const { namespace = read.metadata.namespace } = raw.metadata;
    parsed.push({ ...read, metadata: { ...read.metadata, namespace } });
  }
  return buildSnapshot({ objects: parsed, mesh, features });
}

/** Generation relies on checks made before it, and inputs of its tests have what would not have passed them. */
const UNCHECKED = new Map<string, Schema<unknown>>([
  ["DestinationRule", destinationRuleSchema],
  ["Service", serviceSchema],
  ["Sidecar", sidecarSchema],
  ["VirtualService", virtualServiceSchema],
]);

function unchecked(raw: KubernetesObject): ConfigObject | undefined {
  const schema = UNCHECKED.get(raw.kind);
  if (schema === undefined || !("spec" in raw)) return undefined;
  const { name, namespace = "default", labels = {} } = raw.metadata;
  const spec = parse(schema, raw.spec, "spec").value;
  const metadata = { name, namespace, labels, annotations: {}, createdAt: 0 };
  return spec === undefined ? undefined : { kind: raw.kind, metadata, spec, origin: undefined };
}

function workloadEntries(objects: readonly KubernetesObject[]): readonly KubernetesObject[] {
  const nodes = new Map(objects.filter((one) => one.kind === "Node").map((node) => [node.metadata.name, node]));
  return objects.filter(isPod).flatMap((pod) => {
    const address = pod.status?.podIP;
    return address === undefined ? [] : [workloadEntry(pod, address, nodes.get(pod.spec.nodeName ?? ""))];
  });
}

function workloadEntry(pod: Pod, address: string, node: KubernetesObject | undefined) {
  // A pod speaks mutual TLS only if its label says so; an entry with a service account does without one.
  const labels = { "security.istio.io/tlsMode": "disabled", ...pod.metadata.labels };
  const ports = (pod.spec.containers ?? []).flatMap((container) => container.ports ?? []);
  const named = ports.flatMap(({ name, containerPort }) => (name === undefined ? [] : [[name, containerPort]]));
  const { "topology.kubernetes.io/region": region = "", "topology.kubernetes.io/zone": zone } =
    node?.metadata.labels ?? {};
  return {
    apiVersion: "networking.istio.io/v1",
    kind: "WorkloadEntry",
    metadata: pod.metadata,
    spec: {
      address,
      labels,
      ports: Object.fromEntries(named),
      serviceAccount: pod.spec.serviceAccountName ?? "default",
      locality: zone === undefined ? region : `${region}/${zone}`,
    },
  };
}

/** What Istio makes of objects of the Gateway API is marked so. */
function isInternal({ metadata: { annotations = {} } }: KubernetesObject): boolean {
  return Object.keys(annotations).some((name) => name.startsWith("internal.istio.io/"));
}

function isPod(object: KubernetesObject): object is Pod {
  return object.kind === "Pod";
}
