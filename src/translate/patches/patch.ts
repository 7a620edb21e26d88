/**
 * EnvoyFilters: what users change of the generated configuration.
 *
 *   select.ts        which patches a proxy gets, in which order
 *   patch.ts         a patch with its message read
 *   plan.ts          recipes of resources that patches touch become recipes of patched resources
 *   clusters.ts  listeners.ts  network-filters.ts  routes.ts    what the patches do to a message
 *   match.ts  merge.ts  list.ts                                 what they have in common
 */
import { type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { usableValue } from "#config/kinds/envoy-filter/check.ts";
import type { PatchTarget, PatchValue } from "#config/kinds/envoy-filter/check-value.ts";
import type { ConfigPatch, EnvoyFilter, PatchMatch } from "#config/kinds/envoy-filter/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { TypedExtensionConfigSchema } from "#gen/envoy/config/core/v3/extension_pb.ts";
import {
  FilterChainSchema,
  FilterSchema,
  ListenerFilterSchema,
} from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import { ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { RouteSchema, VirtualHostSchema } from "#gen/envoy/config/route/v3/route_components_pb.ts";
import { RouteConfigurationSchema } from "#gen/envoy/config/route/v3/route_pb.ts";
import { HttpFilterSchema } from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import { derived } from "../recipes/indexes.ts";

/** Which part of a proxy's configuration is being made. */
export type PatchContext = "SIDECAR_INBOUND" | "SIDECAR_OUTBOUND" | "GATEWAY";

/** What a patch does. */
export type Operation = Exclude<NonNullable<NonNullable<ConfigPatch["patch"]>["operation"]>, "INVALID">;

/** The messages that patches change or add, by what the patches apply to. A proxy's bootstrap is none of ours. */
const SCHEMAS = {
  LISTENER: ListenerSchema,
  FILTER_CHAIN: FilterChainSchema,
  NETWORK_FILTER: FilterSchema,
  HTTP_FILTER: HttpFilterSchema,
  ROUTE_CONFIGURATION: RouteConfigurationSchema,
  VIRTUAL_HOST: VirtualHostSchema,
  HTTP_ROUTE: RouteSchema,
  CLUSTER: ClusterSchema,
  EXTENSION_CONFIG: TypedExtensionConfigSchema,
  LISTENER_FILTER: ListenerFilterSchema,
} as const satisfies Readonly<Partial<Record<PatchTarget, DescMessage>>>;

/** What the patches of this folder apply to. */
export type Target = keyof typeof SCHEMAS;

/** The message that a patch of that target is about. */
export type ValueOf<Of extends Target> = MessageShape<(typeof SCHEMAS)[Of]>;

/** One patch. */
export interface Patch<Of extends Target = Target> {
  readonly target: Of;
  readonly operation: Operation;
  readonly match: PatchMatch;
  /** Never changed: who puts it into a resource takes a copy. Without one only REMOVE has something to do. */
  readonly value: ValueOf<Of> | undefined;
}

/** Patches by what they apply to, each list in order. */
export type PatchSet = { readonly [Of in Target]: readonly Patch<Of>[] };

/** Targets of which a patch can be put beside one that it names; elsewhere putting it somewhere is adding it. */
const ORDERED: ReadonlySet<Target> = new Set(["HTTP_FILTER", "NETWORK_FILTER", "HTTP_ROUTE", "LISTENER_FILTER"]);

/** A patch of an EnvoyFilter as it was written; undefined when it can have no effect. */
export function patchAt(filter: ConfigObject<EnvoyFilter>, index: number): Patch | undefined {
  return patchesOf("", filter)[index];
}

const patchesOf = derived((_: string, { spec }: ConfigObject<EnvoyFilter>) =>
  (spec.configPatches ?? []).map((patch) => readPatch(patch, usableValue(patch))),
);

/** A patch with the message that its value is; undefined when it can have no effect. */
export function readPatch(given: ConfigPatch, parsed: PatchValue | undefined): Patch | undefined {
  const { applyTo = "INVALID", patch, match = {} } = given;
  const operation = patch?.operation ?? "INVALID";
  if (!isTarget(applyTo) || operation === "INVALID") return undefined;
  if (parsed === undefined && operation !== "REMOVE") return undefined;
  const value = parsed && fromBinary<DescMessage>(SCHEMAS[applyTo], toBinary(parsed.type, parsed.message));
  return { target: applyTo, operation: normalOperation(applyTo, operation), match, value: value as Patch["value"] };
}

/** What an operation comes to for that target. */
function normalOperation(target: Target, operation: Operation): Operation {
  return operation.startsWith("INSERT_") && !ORDERED.has(target) ? "ADD" : operation;
}

function isTarget(applyTo: string): applyTo is Target {
  return Object.hasOwn(SCHEMAS, applyTo);
}

/** Sorts patches by what they apply to. */
export function patchSet(patches: readonly Patch[]): PatchSet {
  const set = Object.fromEntries(Object.keys(SCHEMAS).map((target) => [target, [] as Patch[]]));
  for (const patch of patches) set[patch.target]?.push(patch);
  return set as unknown as PatchSet;
}
