/** The parts of a proxy by translation: each view is a part, and its plan gives the recipes. */
import type { Proxy as MeshProxy } from "#model/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { CLUSTER_TYPE, LISTENER_TYPE, NAME_TABLE_TYPE, ROUTE_TYPE } from "#protocol/type-urls.ts";
import { type Plan, planEndpoints, planGateway, planInbound, planNameTable, planOutbound } from "#translate/plan.ts";
import { viewsOf } from "#translate/views.ts";
import type { Part, PartPlan, ProxyParts } from "./parts.ts";

/** What the configuration of a proxy is made of in that snapshot. */
export function translatedParts(snapshot: Snapshot, proxy: MeshProxy): ProxyParts {
  const { outbound, inbound, gateway, endpoints, names, omittedListeners } = viewsOf(snapshot, proxy);
  const towards: Part = { key: outbound.key, plan: () => byType(planOutbound(snapshot, outbound)) };
  const table = { key: names.key, plan: () => new Map([[NAME_TABLE_TYPE, [planNameTable(snapshot, names)]]]) };
  const own: Part[] = [];
  if (inbound !== undefined) own.push({ key: inbound.key, plan: () => byType(planInbound(snapshot, inbound)) });
  if (gateway !== undefined) own.push({ key: gateway.key, plan: () => byType(planGateway(snapshot, gateway)) });
  const all = [towards, ...own];
  return {
    types: new Map([
      ...[CLUSTER_TYPE, LISTENER_TYPE, ROUTE_TYPE].map((type) => [type, all] as const),
      [NAME_TABLE_TYPE, [table]],
    ]),
    endpoints: { key: endpoints.key, plan: (cluster) => planEndpoints(snapshot, endpoints, cluster) },
    omittedListeners,
  };
}

function byType({ clusters, listeners, routes }: Plan): PartPlan {
  return new Map([
    [CLUSTER_TYPE, clusters],
    [LISTENER_TYPE, listeners],
    [ROUTE_TYPE, routes],
  ]);
}
