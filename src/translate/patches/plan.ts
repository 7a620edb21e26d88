/**
 * Recipes of what patches touch become recipes of patched resources: they make the whole message first, then change it. All
 * others stay as they are, so that a patch for one cluster costs the others nothing.
 */
import { fromBinary } from "@bufbuild/protobuf";
import type { EnvoyFilter } from "#config/kinds/envoy-filter/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { TypedExtensionConfigSchema } from "#gen/envoy/config/core/v3/extension_pb.ts";
import { ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { VirtualHostSchema } from "#gen/envoy/config/route/v3/route_components_pb.ts";
import { RouteConfigurationSchema } from "#gen/envoy/config/route/v3/route_pb.ts";
import { parseClusterName } from "../names/names.ts";
import { kept } from "../recipes/indexes.ts";
import { type Recipe, recipe } from "../recipes/recipe.ts";
import type { Plan } from "../recipes/view-plan.ts";
import { encode } from "../wire/encode.ts";
import { clusterFate, patchCluster } from "./clusters.ts";
import { patchInlineRoutes, patchListener, patchListenerItself } from "./listeners.ts";
import { addsTo, matchesListenerName, matchesRoutes, type RoutesPlace } from "./match.ts";
import { mergeInto } from "./merge.ts";
import { type Patch, type PatchContext, type PatchSet, patchAt, patchSet, type Target, type ValueOf } from "./patch.ts";
import { type FlatRecipe, flatBytes, flatRecipe, originsOf } from "./recipe-tree.ts";
import { patchedHost, patchRoutes } from "./routes.ts";
import type { Chosen } from "./select.ts";

/** What is patched, and what the patches look at beside the resources. */
export interface Patching extends RoutesPlace {
  readonly context: PatchContext;
  readonly patches: readonly Chosen[];
  /** The services of an inbound cluster. */
  readonly hostsOf: (targetPort: number) => readonly string[];
}

/** The plan with its patches. */
export function patchedPlan(plan: Plan, patching: Patching): Plan {
  if (patching.patches.length === 0) return plan;
  return {
    clusters: patchedClusters(plan.clusters, patching),
    listeners: patchedListeners(plan.listeners, patching),
    routes: patchedRoutes(plan.routes, patching),
    extensions: distinct([...plan.extensions, ...addedExtensions(patching)]),
  };
}

/** Which patches, as inputs have to have them: the objects, and for each which of its patches. */
interface PatchInput {
  readonly filters: readonly ConfigObject<EnvoyFilter>[];
  readonly indexes: readonly number[];
}

interface PatchedInput extends PatchInput {
  readonly context: PatchContext;
  readonly original: FlatRecipe;
}

interface PatchedCluster extends PatchedInput {
  readonly hosts: readonly string[];
}

interface PatchedRoutes extends PatchedInput {
  readonly ports: readonly number[];
  readonly calledPorts: readonly number[];
}

function patchedClusters(clusters: readonly Recipe[], patching: Patching): readonly Recipe[] {
  const own = of(patching, "CLUSTER");
  const patches = own.map(({ patch }) => patch);
  const changed = own.filter(({ patch }) => patch.operation !== "ADD");
  const patched = clusters.flatMap((original) => {
    const parsed = parseClusterName(original.name);
    const hosts = parsed?.direction === "inbound" ? patching.hostsOf(parsed.port) : [];
    const { name, isTouched } = clusterFate(patches, original.name, hosts);
    if (name === undefined) return [];
    if (!isTouched) return [original];
    const input = { ...inputOf(changed, patching, original), hosts };
    return [recipe({ name, input, build: patchedCluster, origins: originsOf(original), unpatched: original })];
  });
  const fresh = own.filter(({ patch }) => addsTo(patch, patching.context));
  return distinct([...patched, ...added(fresh, addedCluster)]);
}

function patchedCluster({ original, hosts, ...input }: PatchedCluster): Uint8Array {
  const cluster = fromBinary(ClusterSchema, flatBytes(original));
  patchCluster(setOf(input).CLUSTER, cluster, hosts);
  return encode(ClusterSchema, cluster);
}

const LISTENER_TARGETS: readonly Target[] = [
  "LISTENER",
  "LISTENER_FILTER",
  "FILTER_CHAIN",
  "NETWORK_FILTER",
  "HTTP_FILTER",
];
const ROUTE_TARGETS: readonly Target[] = ["ROUTE_CONFIGURATION", "VIRTUAL_HOST", "HTTP_ROUTE"];

function patchedListeners(listeners: readonly Recipe[], patching: Patching): readonly Recipe[] {
  // Routes of the workload's own ports are inside its listeners.
  const inline = patching.context === "SIDECAR_INBOUND" ? ROUTE_TARGETS : [];
  const own = of(patching, ...LISTENER_TARGETS, ...inline).filter(({ patch }) => !isAdded("LISTENER", patch));
  const patched = listeners.flatMap((original) => {
    const fitting = own.filter(({ patch }) => matchesListenerName(patch.match.listener, original.name));
    if (fitting.length === 0) return [original];
    const name = listenerNameAfter(original, fitting);
    if (name === undefined) return [];
    const input = inputOf(own, patching, original);
    return [recipe({ name, input, build: patchedListener, origins: originsOf(original), unpatched: original })];
  });
  const fresh = of(patching, "LISTENER").filter(({ patch }) => addsTo(patch, patching.context));
  return distinct([...patched, ...added(fresh, addedListener)]);
}

/** Its name after the patches, undefined when they remove it. Only where it may be removed or renamed it is made to see that. */
function listenerNameAfter(original: Recipe, fitting: readonly Chosen[]): string | undefined {
  const { LISTENER: patches } = patchSet(fitting.map(({ patch }) => patch));
  if (!patches.some(({ operation, value }) => operation === "REMOVE" || value?.name)) return original.name;
  const listener = fromBinary(ListenerSchema, original.build(original.input));
  return patchListenerItself(patches, listener) ? listener.name : undefined;
}

function patchedListener({ original, context, ...input }: PatchedInput): Uint8Array {
  const listener = fromBinary(ListenerSchema, flatBytes(original));
  const patches = setOf(input);
  if (context === "SIDECAR_INBOUND" && ROUTE_TARGETS.some((target) => patches[target].length > 0)) {
    patchInlineRoutes(patches, listener);
  }
  patchListener(patches, listener);
  return encode(ListenerSchema, listener);
}

function patchedRoutes(routes: readonly Recipe[], patching: Patching): readonly Recipe[] {
  const own = of(patching, ...ROUTE_TARGETS);
  return routes.map((original) => {
    const { name } = original;
    const fits = ({ patch }: Chosen) => matchesRoutes(patch.match.routeConfiguration, name, patching);
    if (!own.some(fits)) return original;
    const fitting = own.filter(fits);
    if (isHostByHost(fitting)) return routesHostByHost(original, fitting, patching);
    const ports = [...patching.servicePorts].flatMap(([port, called]) =>
      [...called].map((one) => [port, one] as const),
    );
    const input = {
      ...inputOf(own, patching, original),
      ports: ports.map(([port]) => port),
      calledPorts: ports.map(([, called]) => called),
    };
    return recipe({ name, input, build: patchedRouteConfiguration, origins: originsOf(original), unpatched: original });
  });
}

/** Hosts can be patched apart from one another unless the whole says which there are. */
function isHostByHost(fitting: readonly Chosen[]): boolean {
  const { ROUTE_CONFIGURATION: whole, VIRTUAL_HOST: hosts } = patchSet(fitting.map(({ patch }) => patch));
  const keepsHosts = whole.every(({ value }) => !value?.name && (value?.virtualHosts ?? []).length === 0);
  return keepsHosts && hosts.every(({ operation }) => operation !== "REMOVE");
}

/** Hosts stay parts: when one of them changes, only that one is made and patched again. */
function routesHostByHost(original: Recipe, fitting: readonly Chosen[], patching: Patching): Recipe {
  const { name, input, build, parts, origins = [] } = original;
  const ofWhole = fitting.filter(({ patch }) => patch.target === "ROUTE_CONFIGURATION");
  const ofHosts = fitting.filter(({ patch }) => !ofWhole.some((one) => one.patch === patch));
  const changing = ofHosts.filter(({ patch }) => !isAdded("VIRTUAL_HOST", patch));
  const hosts = (parts?.recipes ?? []).map((host) =>
    changing.length > 0
      ? recipe({ name: host.name, input: inputOf(changing, patching, host), build: patchedVirtualHost })
      : host,
  );
  const fresh = of({ ...patching, patches: ofHosts }, "VIRTUAL_HOST").filter(({ patch }) =>
    isAdded("VIRTUAL_HOST", patch),
  );
  const recipes = [...hosts, ...added(fresh, addedVirtualHost)];
  const joined = { field: parts?.field ?? VIRTUAL_HOSTS, recipes };
  const common = { name, parts: joined, origins, unpatched: original };
  if (ofWhole.length === 0) return recipe({ ...common, input, build });
  const whole = inputOf(ofWhole, patching, { name, input, build });
  return recipe({ ...common, input: whole, build: mergedRoutes });
}

const VIRTUAL_HOSTS = 2;

function mergedRoutes({ original, ...input }: PatchedInput): Uint8Array {
  const routes = fromBinary(RouteConfigurationSchema, flatBytes(original));
  for (const { operation, value } of setOf(input).ROUTE_CONFIGURATION) {
    if (operation === "MERGE" && value !== undefined) mergeInto(RouteConfigurationSchema, routes, value);
  }
  return encode(RouteConfigurationSchema, routes);
}

function patchedVirtualHost({ original, ...input }: PatchedInput): Uint8Array {
  const host = patchedHost(setOf(input), fromBinary(VirtualHostSchema, flatBytes(original)));
  if (typeof host === "string") throw new Error(`Virtual host "${host}" is removed apart from the others`);
  return encode(VirtualHostSchema, host);
}

function addedVirtualHost(input: PatchInput): Uint8Array {
  return encode(VirtualHostSchema, messageOf(input, "VIRTUAL_HOST"));
}

function patchedRouteConfiguration({ original, context, ports, calledPorts, ...input }: PatchedRoutes): Uint8Array {
  const routes = fromBinary(RouteConfigurationSchema, flatBytes(original));
  const servicePorts = new Map<number, Set<number>>();
  for (const [i, port] of ports.entries()) {
    servicePorts.set(port, (servicePorts.get(port) ?? new Set()).add(calledPorts[i] ?? 0));
  }
  patchRoutes(setOf(input), routes, { context, servicePorts });
  return encode(RouteConfigurationSchema, routes);
}

/** Resources that patches add, known by their name; one without is none. */
function added(
  chosen: readonly (Chosen & { readonly patch: { readonly value: { readonly name: string } | undefined } })[],
  build: (input: PatchInput) => Uint8Array,
): readonly Recipe[] {
  return chosen.flatMap(({ filter, index, patch }) => {
    const name = patch.value?.name ?? "";
    return name === "" ? [] : [recipe({ name, input: { filters: [filter], indexes: [index] }, build })];
  });
}

function addedExtensions(patching: Patching): readonly Recipe[] {
  const fresh = of(patching, "EXTENSION_CONFIG").filter(({ patch }) => patch.operation === "ADD");
  return added(fresh, addedExtension);
}

function addedCluster(input: PatchInput): Uint8Array {
  return encode(ClusterSchema, messageOf(input, "CLUSTER"));
}

function addedListener(input: PatchInput): Uint8Array {
  return encode(ListenerSchema, messageOf(input, "LISTENER"));
}

function addedExtension(input: PatchInput): Uint8Array {
  return encode(TypedExtensionConfigSchema, messageOf(input, "EXTENSION_CONFIG"));
}

function messageOf<Of extends Target>(input: PatchInput, target: Of): ValueOf<Of> {
  const value = setOf(input)[target][0]?.value;
  if (value === undefined) throw new Error(`No value of ${target} in the patch`);
  return value;
}

function of<Of extends Target>({ patches }: Patching, ...targets: readonly Of[]) {
  return patches.filter((chosen): chosen is Chosen & { readonly patch: Patch<Of> } =>
    targets.some((target) => target === chosen.patch.target),
  );
}

function isAdded(target: Target, patch: Patch): boolean {
  return patch.target === target && patch.operation === "ADD";
}

function inputOf(chosen: readonly Chosen[], { context }: Patching, original: Recipe): PatchedInput {
  return {
    filters: chosen.map(({ filter }) => filter),
    indexes: chosen.map(({ index }) => index),
    context,
    // Recipes of what did not change are the same objects, and so is what was laid out of them.
    original: kept(original, "flat", [], () => flatRecipe(original)),
  };
}

function setOf({ filters, indexes }: PatchInput): PatchSet {
  return patchSet(filters.flatMap((filter, i) => patchAt(filter, indexes[i] ?? 0) ?? []));
}

/** Of two resources of one name the first one counts. */
function distinct(recipes: readonly Recipe[]): readonly Recipe[] {
  const names = new Set<string>();
  return recipes.filter(({ name }) => !names.has(name) && names.add(name));
}
