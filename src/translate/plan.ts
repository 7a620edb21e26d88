/**
 * Plans: which resources a view gives, as recipes. Planning is cheap and builds nothing; the xDS server builds what it does
 * not have yet. All work is in the folders, one per type of resource.
 */
import type { Snapshot } from "#model/snapshot.ts";
import { planOutboundClusters } from "./clusters/plan.ts";
import { planInboundClusters } from "./clusters/plan-inbound.ts";
import { planGatewayListeners } from "./listeners/plan-gateway.ts";
import { planInboundListeners } from "./listeners/plan-inbound.ts";
import { planOutboundListeners, routeNamesOf } from "./listeners/plan-outbound.ts";
import type { Recipe } from "./recipe.ts";
import { planGatewayRoutes } from "./routes/plan-gateway.ts";
import { planOutboundRoutes } from "./routes/plan-outbound.ts";
import { routerServers } from "./scope/gateways.ts";
import type { GatewayView, InboundView, OutboundView } from "./views.ts";

export { planEndpoints } from "./endpoints/plan.ts";
export { planNameTable } from "./name-table/plan.ts";

/** The resources of one view, each once by name. */
export interface Plan {
  readonly clusters: readonly Recipe[];
  readonly listeners: readonly Recipe[];
  readonly routes: readonly Recipe[];
}

/** Towards services. A router has the clusters only: its listeners and routes are those of its Gateways. */
export function planOutbound(snapshot: Snapshot, view: OutboundView): Plan {
  const clusters = planOutboundClusters(snapshot, view);
  if (view.role === "router") return { clusters, listeners: [], routes: [] };
  return {
    clusters,
    listeners: planOutboundListeners(snapshot, view),
    routes: planOutboundRoutes(snapshot, view, routeNamesOf(snapshot, view)),
  };
}

/** The workload's own ports. */
export function planInbound(snapshot: Snapshot, view: InboundView): Plan {
  return {
    clusters: planInboundClusters(snapshot, view),
    listeners: planInboundListeners(snapshot, view),
    routes: [],
  };
}

/** The servers of a router. Its clusters are those of its outbound view. */
export function planGateway(snapshot: Snapshot, view: GatewayView): Plan {
  const servers = routerServers(view);
  return {
    clusters: [],
    listeners: planGatewayListeners(snapshot, view, servers),
    routes: planGatewayRoutes(snapshot, view, servers),
  };
}
