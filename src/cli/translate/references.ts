/** Which resources Envoy asks for by name because another resource names them, found in its JSON. */
import type { JsonValue } from "@bufbuild/protobuf";

/** Names by what they are names of. */
export interface References {
  readonly routes: ReadonlySet<string>;
  readonly endpoints: ReadonlySet<string>;
  readonly extensions: ReadonlySet<string>;
  readonly secrets: ReadonlySet<string>;
  /** Clusters that routes lead to; only programs that speak xDS themselves ask for them by name. */
  readonly clusters: ReadonlySet<string>;
}

type Found = { readonly [Kind in keyof References]: Set<string> };

/** Everything that these resources name. What comes from a file or from another server than the control plane does not count. */
export function referencesIn(resources: Iterable<JsonValue>): References {
  const found: Found = {
    routes: new Set(),
    endpoints: new Set(),
    extensions: new Set(),
    secrets: new Set(),
    clusters: new Set(),
  };
  for (const resource of resources) visit(resource, found);
  return found;
}

function visit(value: JsonValue, found: Found): void {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const item of value) visit(item, found);
    return;
  }
  const { name, type, cluster, rds, edsClusterConfig, sdsConfig, configDiscovery } = value;
  add(found.routes, textIn(rds, "routeConfigName"));
  if (type === "EDS") add(found.endpoints, textIn(edsClusterConfig, "serviceName") || textOf(name));
  if (isAggregated(sdsConfig)) add(found.secrets, textOf(name));
  if (isAggregated(fieldOf(configDiscovery, "configSource"))) add(found.extensions, textOf(name));
  add(found.clusters, textOf(cluster));
  if ("weightedClusters" in value) {
    const clusters = fieldOf(value.weightedClusters, "clusters");
    for (const one of Array.isArray(clusters) ? clusters : []) add(found.clusters, textIn(one, "name"));
  }
  for (const inner of Object.values(value)) visit(inner, found);
}

/** Fetched over the stream that everything else comes by. */
function isAggregated(source: JsonValue | undefined): boolean {
  return fieldOf(source, "ads") !== undefined || fieldOf(source, "self") !== undefined;
}

function add(names: Set<string>, name: string): void {
  if (name !== "") names.add(name);
}

function textIn(value: JsonValue | undefined, field: string): string {
  return textOf(fieldOf(value, field));
}

function fieldOf(value: JsonValue | undefined, field: string): JsonValue | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value[field] : undefined;
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}
