/** What proxies are sent: the plans of translation, as parts by view. */
import { CLUSTER_TYPE, LISTENER_TYPE, NAME_TABLE_TYPE, ROUTE_TYPE } from "#protocol/type-urls.ts";
import { type Plan, planEndpoints, planGateway, planInbound, planNameTable, planOutbound } from "#translate/plan.ts";
import { viewsOf } from "#translate/views.ts";
import type { Part, PartPlan, PartsOf } from "./parts.ts";

/** A sidecar has what its workload calls and what calls its workload; a router what it calls and what its Gateways say. */
export const translatedParts: PartsOf = (snapshot, proxy) => {
  const { outbound, inbound, gateway, endpoints, names, omittedListeners } = viewsOf(snapshot, proxy);
  const parts = [
    part(outbound.key, () => planOutbound(snapshot, outbound)),
    ...(inbound === undefined ? [] : [part(inbound.key, () => planInbound(snapshot, inbound))]),
    ...(gateway === undefined ? [] : [part(gateway.key, () => planGateway(snapshot, gateway))]),
  ];
  const nameTable: Part = {
    key: names.key,
    plan: () => new Map([[NAME_TABLE_TYPE, [planNameTable(snapshot, names)]]]),
  };
  return {
    types: new Map([
      [CLUSTER_TYPE, parts],
      [LISTENER_TYPE, parts],
      [ROUTE_TYPE, parts],
      [NAME_TABLE_TYPE, [nameTable]],
    ]),
    endpoints: { key: endpoints.key, plan: (cluster) => planEndpoints(snapshot, endpoints, cluster) },
    omittedListeners,
  };
};

function part(key: string, plan: () => Plan): Part {
  return { key, plan: () => byType(plan()) };
}

function byType({ clusters, listeners, routes }: Plan): PartPlan {
  return new Map([
    [CLUSTER_TYPE, clusters],
    [LISTENER_TYPE, listeners],
    [ROUTE_TYPE, routes],
  ]);
}
