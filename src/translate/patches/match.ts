/** What a patch applies to. A match that says nothing of something takes whatever there is; 0 and empty text say nothing. */
import type {
  ClusterMatch,
  ListenerMatch,
  PatchMatch,
  RouteConfigurationMatch,
} from "#config/kinds/envoy-filter/schema.ts";
import type { FilterChain } from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import type { Listener } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import type { Route, VirtualHost } from "#gen/envoy/config/route/v3/route_components_pb.ts";
import { parseClusterName, parseGatewayRouteName, VIRTUAL_INBOUND, VIRTUAL_OUTBOUND } from "../names/names.ts";
import type { Patch, PatchContext, Target } from "./patch.ts";

/** Whether a patch is for that part of a proxy's configuration. */
export function isForContext({ context = "ANY" }: PatchMatch, wanted: PatchContext): boolean {
  return context === "ANY" || context === wanted;
}

/** Whether it adds a listener or cluster there. Without a context of its own that is for what goes out. */
export function addsTo({ operation, match }: Patch<"LISTENER"> | Patch<"CLUSTER">, context: PatchContext): boolean {
  const isAnywhere = (match.context ?? "ANY") === "ANY";
  return operation === "ADD" && isForContext(match, context) && !(isAnywhere && context === "SIDECAR_INBOUND");
}

/** Whether it is for that cluster. `hosts` are the services of an inbound cluster, whose name tells none. */
export function matchesCluster(match: ClusterMatch | undefined, name: string, hosts: readonly string[]): boolean {
  if (match === undefined) return true;
  if (match.name) return match.name === name;
  const parsed = parseClusterName(name);
  const { subset = "", hostname = "", port = 0 } = parsed ?? {};
  const names = parsed?.direction === "inbound" && hosts.length > 0 ? hosts : [hostname];
  return (
    (!match.subset || match.subset === subset) &&
    (!match.service || names.includes(match.service)) &&
    (!match.portNumber || match.portNumber === port)
  );
}

/** Whether it is for that listener, by name alone. */
export function matchesListenerName(match: ListenerMatch | undefined, name: string): boolean {
  return !match?.name || match.name === name;
}

/**
 * Whether it is for that listener. The ports of the listeners that receive all captured traffic are those of their chains,
 * unless the patch is for the listener itself.
 */
export function matchesListener(
  match: ListenerMatch | undefined,
  { name, address }: Listener,
  target: Target,
): boolean {
  if (match === undefined) return true;
  if (!matchesListenerName(match, name)) return false;
  if (!match.portNumber || (target !== "LISTENER" && isVirtual(name))) return true;
  const socket = address?.address.case === "socketAddress" ? address.address.value.portSpecifier : undefined;
  return socket?.case === "portValue" && socket.value === match.portNumber;
}

/** Whether it is for that chain of a listener that fits already. */
export function matchesChain(match: ListenerMatch | undefined, listener: Listener, chain: FilterChain): boolean {
  if (match === undefined) return true;
  const taken = chain.filterChainMatch;
  const port = taken?.destinationPort ?? 0;
  if (isVirtual(listener.name) && match.portNumber && port !== match.portNumber) return false;
  const { name, sni, transportProtocol, applicationProtocols, destinationPort } = match.filterChain ?? {};
  const protocols = applicationProtocols ? applicationProtocols.split(",") : [];
  return (
    (!name || name === chain.name) &&
    (!sni || taken?.serverNames.includes(sni) === true) &&
    (!transportProtocol || taken?.transportProtocol === transportProtocol) &&
    protocols.every((protocol) => taken?.applicationProtocols.includes(protocol) === true) &&
    (!destinationPort || port === destinationPort)
  );
}

/** The network filter that a patch names. */
export function networkFilterOf(match: ListenerMatch | undefined): string | undefined {
  const filter = match?.filterChain?.filter;
  return filter === undefined ? undefined : (filter.name ?? "");
}

/** The HTTP filter that a patch names. */
export function httpFilterOf(match: ListenerMatch | undefined): string | undefined {
  const filter = match?.filterChain?.filter?.subFilter;
  return filter === undefined ? undefined : (filter.name ?? "");
}

/** Where routes are, beside their name. */
export interface RoutesPlace {
  readonly context: PatchContext;
  /** The ports that clients call for each port that a router listens on. */
  readonly servicePorts: ReadonlyMap<number, ReadonlySet<number>>;
}

/** Whether it is for the routes of that name. */
export function matchesRoutes(
  match: RouteConfigurationMatch | undefined,
  name: string,
  { context, servicePorts }: RoutesPlace,
): boolean {
  if (match === undefined) return true;
  if (match.name && match.name !== name) return false;
  if (context !== "GATEWAY") return !match.portNumber || match.portNumber === portOfRoutes(name);
  const { port, portName, gateway } = parseGatewayRouteName(name);
  if (match.portName && match.portName !== portName) return false;
  if (match.gateway && match.gateway !== gateway) return false;
  if (!match.portNumber) return true;
  return servicePorts.get(port)?.has(match.portNumber) ?? port === match.portNumber;
}

function portOfRoutes(name: string): number {
  if (name.startsWith("inbound")) return parseClusterName(name)?.port ?? 0;
  return /^\d+$/.test(name) ? Number(name) : 0;
}

/** Whether it is for that virtual host of routes that fit already. */
export function matchesHost(match: RouteConfigurationMatch | undefined, host: VirtualHost | undefined): boolean {
  const wanted = match?.vhost;
  if (wanted === undefined) return true;
  if (host === undefined) return false;
  return (
    (!wanted.name || wanted.name === host.name) && (!wanted.domainName || host.domains.includes(wanted.domainName))
  );
}

const ACTIONS: Readonly<Record<string, string>> = {
  route: "ROUTE",
  redirect: "REDIRECT",
  directResponse: "DIRECT_RESPONSE",
};

/** Whether it is for that route of a virtual host that fits already. Actions of other kinds are not told apart. */
export function matchesRoute(match: RouteConfigurationMatch | undefined, route: Route | undefined): boolean {
  const wanted = match?.vhost?.route;
  if (wanted === undefined) return true;
  if (route === undefined) return false;
  if (wanted.name && wanted.name !== route.name) return false;
  const action = ACTIONS[route.action.case ?? ""];
  return (wanted.action ?? "ANY") === "ANY" || action === undefined || action === wanted.action;
}

function isVirtual(name: string): boolean {
  return name === VIRTUAL_INBOUND || name === VIRTUAL_OUTBOUND;
}
