/** A cluster as the data dumps it to a snapshot. */

import { authorizationPolicySchema } from "#config/kinds/authorization-policy/schema.ts";
import { destinationRuleSchema } from "#config/kinds/destination-rule/schema.ts";
import { endpointSliceSchema } from "#config/kinds/endpoint-slice/schema.ts";
import { gatewaySchema } from "#config/kinds/gateway/schema.ts";
import { parseObject } from "#config/kinds/parse-object.ts";
import { serviceSchema } from "#config/kinds/service/schema.ts";
import { sidecarSchema } from "#config/kinds/sidecar/schema.ts";
import { virtualServiceSchema } from "#config/kinds/virtual-service/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Schema } from "#config/schema/message.ts";
import { parse } from "#config/schema/parse.ts";
import { INGRESS_SEMANTICS } from "#config/terms/ingress-semantics.ts";
import { buildSnapshot } from "#convert/snapshot.ts";
import { DEFAULT_FEATURES, type Features } from "#model/features.ts";
import type { Snapshot } from "#model/snapshot.ts";

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly creationTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

export interface MeshInput {
  readonly objects: readonly KubernetesObject[];
  /** What other clusters have, by their names. */
  readonly remotes?: ReadonlyMap<string, readonly KubernetesObject[]>;
  readonly mesh: MeshConfig;
  readonly features?: Features;
}

/** A snapshot, or why the objects cannot make one yet. */
export function kubernetesMesh(input: MeshInput): Snapshot | { readonly leftOut: string } {
  const { objects, mesh, features = DEFAULT_FEATURES, remotes = new Map() } = input;
  const parsed = parsedObjects(objects);
  if ("leftOut" in parsed) return parsed;
  const others = [];
  for (const [clusterId, theirs] of remotes) {
    const known = parsedObjects(theirs);
    if ("leftOut" in known) return known;
    others.push({ clusterId, objects: known });
  }
  return buildSnapshot({ objects: parsed, remotes: others, mesh, features, byApiServer: true });
}

function parsedObjects(objects: readonly KubernetesObject[]): ConfigObject[] | { readonly leftOut: string } {
  const parsed: ConfigObject[] = [];
  if (objects.some(isInternal)) return { leftOut: "Gateways made from the Gateway API have no effect yet" };
  for (const raw of objects) {
    const { object, problems, notYet, key } = parseObject(raw);
    if (notYet) return { leftOut: `${raw.kind} of ${raw.apiVersion.split("/")[0]} has no effect yet` };
    const read = object ?? unchecked(raw);
    if (read === undefined) throw new Error(`${key}: ${JSON.stringify(problems)}`);
    // Tests put objects into no namespace at all; in YAML that means the default one.
    const { namespace = read.metadata.namespace } = raw.metadata;
    parsed.push({ ...read, metadata: { ...read.metadata, namespace } });
  }
  return parsed;
}

/** Generation relies on checks made before it, and inputs of its tests have what would not have passed them. */
const UNCHECKED = new Map<string, Schema<unknown>>([
  ["AuthorizationPolicy", authorizationPolicySchema],
  ["DestinationRule", destinationRuleSchema],
  ["EndpointSlice", endpointSliceSchema],
  ["Gateway", gatewaySchema],
  ["Service", serviceSchema],
  ["Sidecar", sidecarSchema],
  ["VirtualService", virtualServiceSchema],
]);

function unchecked(raw: KubernetesObject): ConfigObject | undefined {
  const schema = UNCHECKED.get(raw.kind);
  if (schema === undefined) return undefined;
  const { name, namespace = "default", labels = {}, creationTimestamp = "" } = raw.metadata;
  const spec = parse(schema, "spec" in raw ? raw.spec : raw, "spec").value;
  const metadata = { name, namespace, labels, annotations: {}, createdAt: Date.parse(creationTimestamp) || 0 };
  return spec === undefined ? undefined : { kind: raw.kind, metadata, spec, origin: undefined };
}

/** What Istio makes of objects of the Gateway API is marked so; what it makes of Ingresses has a mark of its own. */
function isInternal({ metadata: { annotations = {} } }: KubernetesObject): boolean {
  return Object.entries(annotations).some(
    ([name, value]) => name.startsWith("internal.istio.io/") && INGRESS_SEMANTICS[name] !== value,
  );
}
