/** Patches of EnvoyFilters applied to clusters, listeners and routes. */
import { join } from "node:path";
import { fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { parsePatchValue } from "#config/kinds/envoy-filter/check-value.ts";
import { type ConfigPatch, envoyFilterSchema } from "#config/kinds/envoy-filter/schema.ts";
import { parse } from "#config/schema/parse.ts";
import { ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { RouteConfigurationSchema } from "#gen/envoy/config/route/v3/route_pb.ts";
import { patchCluster } from "#translate/patches/clusters.ts";
import { patchListener } from "#translate/patches/listeners.ts";
import { addsTo, isForContext } from "#translate/patches/match.ts";
import { type Patch, type PatchContext, type PatchSet, patchSet, readPatch } from "#translate/patches/patch.ts";
import { patchRoutes } from "#translate/patches/routes.ts";
import { compareJson } from "../compare.ts";
import { type Case, type Group, type Outcome, readJson } from "../harness.ts";
import { messageType, parseResource, RESOURCE_TYPES, throughBytes } from "../resources.ts";

interface PatchCase {
  readonly name: string;
  readonly kind: "cluster" | "listeners" | "routeConfiguration";
  readonly context: PatchContext;
  readonly before: unknown;
  /** Null when it was removed. */
  readonly after: unknown;
  readonly hosts?: readonly string[];
  readonly skipAdds?: boolean;
  readonly portMap?: Readonly<Record<string, readonly (number | string)[]>> | null;
  readonly patches: readonly { readonly applyTo: string; readonly match?: object; readonly patch: RawPatch }[];
}

interface RawPatch {
  readonly operation: string;
  readonly value: Readonly<Record<string, unknown>> | null;
}

export const envoyFilterPatches: Group = {
  name: "EnvoyFilter patches",
  cases: async (folder) => {
    const file = await readJson<{ readonly cases: readonly PatchCase[] }>(
      join(folder, "pilot/pkg/networking/core/envoyfilter/cases.json"),
    );
    return (file?.cases ?? []).map((one): Case => ({ name: one.name, check: () => checkCase(one) }));
  },
};

function checkCase(one: PatchCase): Outcome {
  const patches = patchSet(readPatches(one).filter(({ match }) => isForContext(match, one.context)));
  if (one.kind === "cluster") return checkCluster(one, patches);
  return one.kind === "listeners" ? checkListeners(one, patches) : checkRoutes(one, patches);
}

function checkCluster({ before, after, hosts = [] }: PatchCase, patches: PatchSet): Outcome {
  const cluster = fromBinary(ClusterSchema, bytesOf("Cluster", before));
  const isKept = patchCluster(patches.CLUSTER, cluster, hosts);
  return compareJson(isKept ? shown("Cluster", cluster) : null, after && expected("Cluster", after));
}

function checkListeners({ before, after, context, skipAdds }: PatchCase, patches: PatchSet): Outcome {
  const listeners = (before as unknown[]).map((json) => fromBinary(ListenerSchema, bytesOf("Listener", json)));
  const kept = listeners.filter((listener) => patchListener(patches, listener));
  const fresh = patches.LISTENER.filter((patch) => addsTo(patch, context)).flatMap(({ value }) => value ?? []);
  return compareJson(
    [...kept, ...(skipAdds ? [] : fresh)].map((listener) => shown("Listener", listener)),
    (after as unknown[]).map((json) => expected("Listener", json)),
  );
}

function checkRoutes({ before, after, context, portMap }: PatchCase, patches: PatchSet): Outcome {
  const routes = fromBinary(RouteConfigurationSchema, bytesOf("RouteConfiguration", before));
  const ports = Object.entries(portMap ?? {}).map(
    ([port, called]) => [Number(port), new Set(called.map(Number))] as const,
  );
  patchRoutes(patches, routes, { context, servicePorts: new Map(ports) });
  return compareJson(shown("RouteConfiguration", routes), expected("RouteConfiguration", after));
}

/** The data has patches that were selected already, with the type beside the fields of their value. */
function readPatches({ patches }: PatchCase): readonly Patch[] {
  const configPatches = patches.map(({ applyTo, match, patch: { operation, value } }) => {
    const { $type: _, ...fields } = value ?? {};
    return { applyTo, match, patch: { operation, value: value === null ? null : fields } };
  });
  const { value, problems } = parse(envoyFilterSchema, { configPatches }, "spec");
  if (value === undefined) throw new Error(JSON.stringify(problems));
  return (value.configPatches ?? []).flatMap((patch) => readPatch(patch, messageOf(patch)) ?? []);
}

function messageOf({ applyTo = "INVALID", patch }: ConfigPatch) {
  if (applyTo === "INVALID" || patch?.value === undefined) return undefined;
  const parsed = parsePatchValue(applyTo, patch.value);
  if (typeof parsed === "string") throw new Error(parsed);
  return parsed;
}

function typeOf(kind: string) {
  return messageType(RESOURCE_TYPES[kind] ?? kind);
}

function bytesOf(kind: string, json: unknown): Uint8Array {
  return toBinary(typeOf(kind), parseResource(typeOf(kind), json));
}

function shown(kind: string, message: Message) {
  return throughBytes(typeOf(kind), message);
}

function expected(kind: string, json: unknown) {
  return shown(kind, parseResource(typeOf(kind), json));
}
