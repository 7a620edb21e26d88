/** Recipes of the listeners of a router. */

import { completeGateway } from "#config/kinds/virtual-service/gateway-name.ts";
import { hostsMatch, isSubsetOf } from "#config/terms/host.ts";
import { isHttp, type Service, type ServicePort } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { MESH_ALL } from "../inbound/inbound-match.ts";
import { listenerName, outboundServerName, udpListenerName } from "../names/names.ts";
import { statName } from "../names/stat-name.ts";
import { authorizationInput } from "../policies/authorization-policies.ts";
import { jwtInput } from "../policies/request-authentications.ts";
import { type Recipe, recipe } from "../recipes/recipe.ts";
import { wildcardAddresses } from "../scope/addresses.ts";
import { credentialProviders } from "../scope/credential-providers.ts";
import { destinationRuleFor } from "../scope/destination-rules.ts";
import { servicesInScope } from "../scope/egress.ts";
import {
  isHttpsServer,
  isPassedThrough,
  type RouterPort,
  type RouterServer,
  type RouterServers,
} from "../scope/gateways.ts";
import { type BoundVirtualService, virtualServicesOf } from "../scope/virtual-services.ts";
import type { GatewayView } from "../views/views.ts";
import type { TcpChain } from "./chains.ts";
import { type Taken, takeFree } from "./distinct-chains.ts";
import { gatewayHttpChain, gatewayListener, gatewayTcpChain, quicListener } from "./gateway.ts";
import { type RouteInput, routeChain } from "./tcp-routes.ts";

const LISTENER_FILTER_CHAINS = 3;

/** A chain, and which connections it takes. */
interface PlannedChain {
  readonly serverNames: readonly string[];
  readonly endsTls: boolean;
  /** For as many of the server names as no other chain has. */
  readonly recipeFor: (serverNames: readonly string[]) => Recipe;
}

interface PlannedListener {
  readonly address: string;
  readonly moreAddresses: readonly string[];
  readonly port: number;
  readonly chains: PlannedChain[];
  readonly taken: Taken;
  /** Gateways whose servers it has. */
  readonly origins: Set<string>;
}

/** One listener per port and address on which some server has something to do. */
export function planGatewayListeners(snapshot: Snapshot, view: GatewayView, servers: RouterServers): readonly Recipe[] {
  const { ipMode, dualStack, outboundExactBalance } = view.traits.listener;
  const [wildcard = "", ...others] = wildcardAddresses(ipMode);
  const listeners = new Map<string, PlannedListener>();
  for (const port of servers.ports) {
    const address = port.bind || wildcard;
    const name = listenerName(address, port.port);
    const listener = listeners.get(name) ?? {
      address,
      moreAddresses: dualStack && port.bind === "" ? others : [],
      port: port.port,
      chains: [],
      taken: new Set(),
      origins: new Set(),
    };
    listeners.set(name, listener);
    for (const { gateway } of port.servers) listener.origins.add(`Gateway/${gateway}`);
    addChains(listener, chainsOf(snapshot, view, { port, name }));
  }
  const quic = planQuicListeners(snapshot, view, servers);
  const readsProxyProtocol = view.traits.http.topology.proxyProtocol !== undefined;
  const planned = [...listeners].flatMap(([name, { address, moreAddresses, port, chains, origins }]) => {
    if (chains.length === 0) return [];
    const inspectsTls = chains.some(({ serverNames, endsTls }) => endsTls || serverNames.length > 0);
    const input = {
      address,
      moreAddresses,
      port,
      inspectsTls,
      readsProxyProtocol,
      exactBalance: outboundExactBalance,
      traits: view.traits.tcp,
      mesh: snapshot.mesh,
    };
    const parts = { field: LISTENER_FILTER_CHAINS, recipes: chains.map((chain) => chain.recipeFor(chain.serverNames)) };
    return [recipe({ name, input, build: gatewayListener, parts, origins: [...origins] })];
  });
  return [...planned, ...quic];
}

/** Beside each listener with servers that speak HTTP/3, one for these. */
function planQuicListeners(snapshot: Snapshot, view: GatewayView, { ports }: RouterServers): readonly Recipe[] {
  const { ipMode, dualStack } = view.traits.listener;
  const [wildcard = "", ...others] = wildcardAddresses(ipMode);
  return ports.flatMap(({ port, bind, servers }) => {
    const spoken = servers.filter(({ speaksHttp3 }) => speaksHttp3);
    if (spoken.length === 0) return [];
    const address = bind || wildcard;
    const name = udpListenerName(address, port);
    const chains = spoken.map((server) => httpChain(snapshot, view, { server, name, isQuic: true }));
    const recipes = chains.map((chain) => chain.recipeFor(chain.serverNames));
    const moreAddresses = dualStack && bind === "" ? others : [];
    const input = { address, moreAddresses, port, traits: view.traits.tcp, mesh: snapshot.mesh };
    const origins = spoken.map(({ gateway }) => `Gateway/${gateway}`);
    return [recipe({ name, input, build: quicListener, parts: { field: LISTENER_FILTER_CHAINS, recipes }, origins })];
  });
}

function addChains({ chains, taken }: PlannedListener, added: readonly PlannedChain[]): void {
  for (const chain of added) {
    const match = takeFree(taken, { serverNames: chain.serverNames, ranges: [] });
    if (match !== undefined) chains.push({ ...chain, serverNames: match.serverNames });
  }
}

interface PortOf {
  readonly port: RouterPort;
  readonly name: string;
}

function chainsOf(snapshot: Snapshot, view: GatewayView, { port, name }: PortOf): readonly PlannedChain[] {
  const [first] = port.servers;
  // Plain HTTP servers of a port share their routes.
  if (first !== undefined && isHttp(port.protocol)) return [httpChain(snapshot, view, { server: first, name })];
  return port.servers.flatMap((server) => {
    if (server.server.tls?.mode === "AUTO_PASSTHROUGH") return passedChains(snapshot, view, { server, name });
    return isHttpsServer(server)
      ? [httpChain(snapshot, view, { server, name })]
      : tcpChains(snapshot, view, { server, name });
  });
}

interface ServerOf {
  readonly server: RouterServer;
  /** Of its listener. */
  readonly name: string;
  readonly isQuic?: boolean;
}

function httpChain(snapshot: Snapshot, view: GatewayView, { server, name, isQuic = false }: ServerOf): PlannedChain {
  const isTls = isHttpsServer(server);
  const serverNames = isTls ? serverNamesOf(server) : [];
  const input = {
    listener: name,
    routeName: server.routeName,
    protocol: server.protocol,
    isQuic,
    serverName: isTls ? (server.server.name ?? "") : "",
    tls: isTls ? server.server.tls : undefined,
    serverSecrets: view.traits.listener.serverSecrets,
    credentialProviders: credentialProviders(snapshot),
    traits: view.traits.http,
    mesh: snapshot.mesh,
    ...authorizationInput(snapshot, view.authorization),
    ...jwtInput(snapshot, view.authentication),
  };
  return {
    serverNames,
    endsTls: isTls,
    recipeFor: (left) => recipe({ name, input: { ...input, serverNames: left }, build: gatewayHttpChain }),
  };
}

/** Hosts without the namespace in front of them. */
function serverNamesOf({ hosts }: RouterServer): readonly string[] {
  const names = new Set(hosts.map((host) => host.split("/").at(-1) ?? host));
  return names.has("*") ? ["*"] : [...names].sort();
}

/** By the TCP routes of the first virtual service that fits, or by its TLS routes where TLS is passed on. */
function tcpChains(snapshot: Snapshot, view: GatewayView, { server, name }: ServerOf): readonly PlannedChain[] {
  const { tls } = server.server;
  const all = virtualServicesOf(snapshot, server.gateway, view.namespace);
  const virtualServices = all.filter((virtualService) => servesHost(server, virtualService));
  const routes = isPassedThrough(tls)
    ? tlsRoutes(virtualServices, server)
    : tcpRoutes(virtualServices, server).slice(0, 1);
  return routes.flatMap(({ virtualService, route, sniHosts }) => {
    const port = { name: server.server.port.name, port: server.server.port.number, protocol: server.protocol };
    const chain = routeChain(snapshot, view, { route, virtualService, port });
    if (chain === undefined) return [];
    const endsTls = tls !== undefined && !isPassedThrough(tls);
    const serverNames = endsTls ? serverNamesOf(server) : sniHosts;
    const { http: traits, listener } = view.traits;
    const authorization = authorizationInput(snapshot, view.authorization);
    const secrets = { serverSecrets: listener.serverSecrets, credentialProviders: credentialProviders(snapshot) };
    const shared = { traits, ...secrets, mesh: snapshot.mesh };
    const input = { ...chain, ...authorization, tls: endsTls ? tls : undefined, ...shared };
    const recipeFor = (left: readonly string[]) =>
      recipe({ name, input: { ...input, serverNames: left }, build: gatewayTcpChain });
    return [{ serverNames, endsTls, recipeFor }];
  });
}

/** To every service of the mesh that the server's hosts cover, by the server names that clients' proxies ask for. */
function passedChains(snapshot: Snapshot, view: GatewayView, { server, name }: ServerOf): readonly PlannedChain[] {
  const hosts = serverNamesOf(server);
  const services = servicesInScope(snapshot, view).list.filter(
    ({ hostname, meshExternal }) => !meshExternal && hosts.some((host) => isSubsetOf(hostname, host)),
  );
  return services.flatMap((service) => {
    const rule = destinationRuleFor(snapshot, service, view);
    const subsets = ["", ...(rule?.spec.subsets ?? []).map((subset) => subset.name)];
    const ports = service.ports.filter(({ protocol }) => protocol !== "UDP");
    return ports.flatMap((port) =>
      subsets.map((subset) => passedChain(snapshot, view, { service, port, subset, rule, name })),
    );
  });
}

interface PassedTo {
  readonly service: Service;
  readonly port: ServicePort;
  readonly subset: string;
  readonly rule: TcpChain["rule"];
  readonly name: string;
}

/** What is passed on unopened is nobody's to allow or deny here: the workload's own proxy decides. */
function passedChain(snapshot: Snapshot, view: GatewayView, to: PassedTo): PlannedChain {
  const { service, port, subset, rule, name } = to;
  const { mesh } = snapshot;
  const cluster = outboundServerName(service.hostname, port.port, subset);
  const stat = statName(mesh.outboundClusterStatName, { service, port, subset, targetPort: 0, fallback: cluster });
  const input = {
    clusters: [cluster],
    weights: [],
    statPrefix: stat,
    protocol: port.protocol,
    subset,
    rule,
    origin: undefined,
    ranges: [],
    applicationProtocols: MESH_ALL,
    tls: undefined,
    tunnels: false,
    serverSecrets: view.traits.listener.serverSecrets,
    credentialProviders: credentialProviders(snapshot),
    traits: view.traits.http,
    mesh,
    ...authorizationInput(snapshot, []),
  };
  const recipeFor = (left: readonly string[]) =>
    recipe({ name, input: { ...input, serverNames: left }, build: gatewayTcpChain });
  return { serverNames: [cluster], endsTls: false, recipeFor };
}

function servesHost({ hosts }: RouterServer, { object, hosts: wanted }: BoundVirtualService): boolean {
  return hosts.some((host) => {
    const [home, name = home] = host.split("/");
    const isOpen = name === home || home === object.metadata.namespace;
    return isOpen && wanted.some((other) => hostsMatch(name ?? "", other));
  });
}

interface L4Route {
  readonly virtualService: BoundVirtualService;
  readonly route: RouteInput["route"];
  readonly sniHosts: readonly string[];
}

function tcpRoutes(virtualServices: readonly BoundVirtualService[], server: RouterServer): L4Route[] {
  return virtualServices.flatMap((virtualService) =>
    (virtualService.object.spec.tcp ?? [])
      .filter(({ match = [] }) => match.length === 0 || match.some((one) => fits(one, server, virtualService)))
      .map(({ route = [] }) => ({ virtualService, route, sniHosts: [] })),
  );
}

function tlsRoutes(virtualServices: readonly BoundVirtualService[], server: RouterServer): L4Route[] {
  return virtualServices.flatMap((virtualService) =>
    (virtualService.object.spec.tls ?? []).flatMap(({ match = [], route = [] }) =>
      match
        .filter((one) => fits(one, server, virtualService))
        .map(({ sniHosts = [] }) => ({ virtualService, route, sniHosts })),
    ),
  );
}

interface L4Condition {
  readonly port?: number | undefined;
  readonly gateways?: readonly string[] | undefined;
}

function fits({ port, gateways = [] }: L4Condition, server: RouterServer, { object }: BoundVirtualService): boolean {
  const isPort = !port || port === server.server.port.number;
  const named = gateways.map((gateway) => completeGateway(gateway, object.metadata.namespace));
  return isPort && (named.length === 0 || named.includes(server.gateway));
}
