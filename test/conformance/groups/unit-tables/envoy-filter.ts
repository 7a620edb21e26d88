/** Tables about what a patch of an EnvoyFilter applies to. */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { envoyFilterSchema, type PatchMatch } from "#config/kinds/envoy-filter/schema.ts";
import { parse } from "#config/schema/parse.ts";
import { RouteSchema, VirtualHostSchema } from "#gen/envoy/config/route/v3/route_components_pb.ts";
import { placed } from "#translate/patches/list.ts";
import { matchesCluster, matchesHost, matchesRoute, matchesRoutes } from "#translate/patches/match.ts";
import { compareJson } from "../../compare.ts";
import { messageType, parseResource } from "../../resources.ts";
import { byRow, unitTables } from "../../unit-tables.ts";

const CONTEXTS = ["SIDECAR_OUTBOUND", "SIDECAR_INBOUND", "SIDECAR_OUTBOUND", "GATEWAY"] as const;

function matchOf(raw: object): PatchMatch {
  const { value, problems } = parse(envoyFilterSchema, { configPatches: [{ match: raw }] }, "spec");
  if (value === undefined) throw new Error(JSON.stringify(problems));
  return value.configPatches?.[0]?.match ?? {};
}

function bytesOf(type: string, json: object): Uint8Array {
  return toBinary(messageType(type), parseResource(messageType(type), json));
}

interface Row<Args> {
  readonly args: Args;
  readonly want: boolean;
}

interface Patch {
  readonly cp: { readonly Match: object };
}

export const envoyFilterTables = unitTables("unit tables: EnvoyFilter", ["pilot/pkg/networking/core/envoyfilter"], {
  "filter list insert/replace helper": byRow<{
    input: number[];
    insertAfter: number[];
    insertBefore: number[];
    replace: number[];
  }>(({ input, insertAfter, insertBefore, replace }) => {
    const result = (operation: "INSERT_AFTER" | "INSERT_BEFORE" | "REPLACE") =>
      placed(input, { operation, item: () => [10], names: (item) => item === 1 });
    const ours = [result("INSERT_AFTER"), result("INSERT_BEFORE"), result("REPLACE")];
    return compareJson(ours, [insertAfter, insertBefore, replace]);
  }),
  clusterMatch: byRow<Row<{ cluster: { name: string }; host?: string; matchCondition: object }>>(
    ({ args: { cluster, host, matchCondition }, want }) =>
      compareJson(
        matchesCluster(matchOf(matchCondition).cluster, cluster.name, host === undefined ? [] : [host]),
        want,
      ),
  ),
  routeConfigurationMatch: byRow<
    Row<Patch & { patchContext: number; rc?: { name: string }; portMap?: Record<string, string[]> }>
  >(({ args: { cp, patchContext, rc, portMap = {} }, want }) => {
    const ports = Object.entries(portMap).map(([port, called]) => [Number(port), new Set(called.map(Number))] as const);
    const place = { context: CONTEXTS[patchContext] ?? "SIDECAR_OUTBOUND", servicePorts: new Map(ports) };
    return compareJson(matchesRoutes(matchOf(cp.Match).routeConfiguration, rc?.name ?? "", place), want);
  }),
  virtualHostMatch: byRow<Row<Patch & { vh?: object }>>(({ args: { cp, vh }, want }) => {
    const host = vh && fromBinary(VirtualHostSchema, bytesOf(VirtualHostSchema.typeName, vh));
    return compareJson(matchesHost(matchOf(cp.Match).routeConfiguration, host), want);
  }),
  routeMatch: byRow<Row<Patch & { httpRoute?: object }>>(({ args: { cp, httpRoute }, want }) => {
    const route = httpRoute && fromBinary(RouteSchema, bytesOf(RouteSchema.typeName, httpRoute));
    return compareJson(matchesRoute(matchOf(cp.Match).routeConfiguration, route), want);
  }),
});
