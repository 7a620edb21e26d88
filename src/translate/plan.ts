/**
 * Plans: which resources a view gives, as recipes. Planning is cheap and builds nothing; the xDS server builds what it does
 * not have yet. All work is in the folders, one per type of resource.
 */
import { finished, type Steps } from "#lib/async/steps.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { planOutboundClusters } from "./clusters/plan.ts";
import { planInboundClusters } from "./clusters/plan-inbound.ts";
import { planGatewayListeners } from "./listeners/plan-gateway.ts";
import { planInboundListeners } from "./listeners/plan-inbound.ts";
import { planOutboundListeners, routeNamesOf } from "./listeners/plan-outbound.ts";
import { parseGatewayRouteName } from "./names/names.ts";
import { type Patching, patchedPlan } from "./patches/plan.ts";
import { chosenPatches } from "./patches/select.ts";
import type { Plan } from "./recipes/view-plan.ts";
import { planGatewayRoutes } from "./routes/plan-gateway.ts";
import { planOutboundRoutes } from "./routes/plan-outbound.ts";
import { type RouterServers, routerServers } from "./scope/gateways.ts";
import type { BaseView, GatewayView, InboundView, OutboundView } from "./views/views.ts";

export { planEndpoints } from "./endpoints/plan.ts";
export { planNameTable } from "./name-table/plan.ts";

/** Towards services. A router has the clusters only: its listeners and routes are those of its Gateways. */
export function planOutbound(snapshot: Snapshot, view: OutboundView): Plan {
  return finished(planOutboundSteps(snapshot, view));
}

/** The same in steps: a mesh of thousands of services takes longer than the event loop may be blocked. */
export function* planOutboundSteps(snapshot: Snapshot, view: OutboundView): Steps<Plan> {
  const clusters = yield* planOutboundClusters(snapshot, view);
  if (view.role === "router") {
    const plan = { clusters, listeners: [], routes: [], extensions: [] };
    return patchedPlan(plan, patching(snapshot, view, { context: "GATEWAY" }));
  }
  const plan = {
    clusters,
    listeners: yield* planOutboundListeners(snapshot, view),
    routes: yield* planOutboundRoutes(snapshot, view, yield* routeNamesOf(snapshot, view)),
    extensions: [],
  };
  return patchedPlan(plan, patching(snapshot, view, { context: "SIDECAR_OUTBOUND" }));
}

/** The workload's own ports. */
export function planInbound(snapshot: Snapshot, view: InboundView): Plan {
  const plan = {
    clusters: planInboundClusters(snapshot, view),
    listeners: planInboundListeners(snapshot, view),
    routes: [],
    extensions: [],
  };
  const hostsOf = (port: number) => {
    const hosts = view.targets.flatMap(({ targetPort, service }) => (targetPort === port ? [service.hostname] : []));
    // A port that only a Sidecar lists is called after that.
    const [, , sidecar] = view.sidecar.split("/");
    return hosts.length === 0 && sidecar !== undefined ? [`${sidecar}.${view.namespace}`] : hosts;
  };
  return patchedPlan(plan, patching(snapshot, view, { context: "SIDECAR_INBOUND", hostsOf }));
}

/** The servers of a router. Its clusters are those of its outbound view. */
export function planGateway(snapshot: Snapshot, view: GatewayView): Plan {
  return finished(planGatewaySteps(snapshot, view));
}

/** The same in steps. */
export function* planGatewaySteps(snapshot: Snapshot, view: GatewayView): Steps<Plan> {
  const servers = routerServers(view);
  const plan = {
    clusters: [],
    listeners: planGatewayListeners(snapshot, view, servers),
    routes: yield* planGatewayRoutes(snapshot, view, servers),
    extensions: [],
  };
  return patchedPlan(plan, patching(snapshot, view, { context: "GATEWAY", servicePorts: calledPorts(servers) }));
}

function patching(
  snapshot: Snapshot,
  { patches }: BaseView,
  where: Partial<Patching> & Pick<Patching, "context">,
): Patching {
  return { patches: chosenPatches(snapshot, patches), hostsOf: () => [], servicePorts: new Map(), ...where };
}

/** The ports that Gateways name for each port that routes are called after. */
function calledPorts({ byRouteName }: RouterServers): Patching["servicePorts"] {
  const ports = new Map<number, Set<number>>();
  for (const [name, servers] of byRouteName) {
    const { port } = parseGatewayRouteName(name);
    ports.set(port, new Set([...(ports.get(port) ?? []), ...servers.map(({ server }) => server.port.number)]));
  }
  return ports;
}
