/** Recipes of the routes of a router. */

import { isVisible } from "#config/visibility.ts";
import type { Steps } from "#lib/async/steps.ts";
import { compareText } from "#lib/compare-text.ts";
import type { Service, Session } from "#model/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { bySpecificity, hostsForNamespace, intersectHosts } from "../hosts.ts";
import { kept } from "../indexes.ts";
import { virtualHostName } from "../names.ts";
import { type Recipe, recipe } from "../recipe.ts";
import type { RouterServer, RouterServers } from "../scope/gateways.ts";
import { servicesOfHost, visibleServices } from "../scope/services.ts";
import { type BoundVirtualService, virtualServicesOf } from "../scope/virtual-services.ts";
import type { GatewayView } from "../views.ts";
import { type ApplicableRoute, applicableRoutes, routeLists } from "./applicable.ts";
import { takesEveryRequest } from "./match.ts";
import { emptyHost, type RoutedHostInput, routeConfiguration, routedHost } from "./virtual-host.ts";

const VIRTUAL_HOSTS = 2;

/** The routes of each server that speaks HTTP; plain ones on one port share theirs. */
export function* planGatewayRoutes(
  snapshot: Snapshot,
  view: GatewayView,
  servers: RouterServers,
): Steps<readonly Recipe[]> {
  const planned: Recipe[] = [];
  for (const [name, sharing] of servers.byRouteName) {
    const recipes = yield* virtualHosts(snapshot, view, sharing);
    const parts = { field: VIRTUAL_HOSTS, recipes };
    planned.push(recipe({ name, input: { name }, build: routeConfiguration, parts }));
  }
  return planned;
}

/** A host of a server, with the routes of all virtual services that are bound to it there. */
interface GatewayHost {
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
  readonly routes: (readonly ApplicableRoute[])[];
  requiresTls: boolean;
  /** Of the service that the host is. */
  readonly session: Session | undefined;
}

function* virtualHosts(
  snapshot: Snapshot,
  view: GatewayView,
  servers: readonly RouterServer[],
): Steps<readonly Recipe[]> {
  const attemptCount = view.traits.http.headers.attemptCount?.disabled !== true;
  const hosts = yield* gatewayHosts(snapshot, view, servers);
  if (hosts.size === 0) {
    const name = virtualHostName("blackhole", servers[0]?.server.port.number ?? 0);
    return [recipe({ name, input: { name, domains: ["*"], attemptCount: false }, build: emptyHost })];
  }
  const sorted = [...hosts.values()].sort((a, b) => bySpecificity(a.host, b.host));
  const { collapseRoutes, shadowSuffix } = snapshot.features;
  const { lackedFields } = view.traits.http;
  const groups = collapseRoutes ? collapse(sorted) : sorted.map((first) => ({ first, domains: [first.host] }));
  const retries = snapshot.mesh.defaultHttpRetryPolicy;
  const xForwardedHost = view.traits.http.headers.xForwardedHost?.enabled === true;
  const offersHttp3 = servers.some(({ speaksHttp3 }) => speaksHttp3);
  const shared = { attemptCount, retries, xForwardedHost, offersHttp3, shadowSuffix, lackedFields };
  const settings = Object.values(shared);
  const recipes = groups.map(({ first, domains }) => {
    const { port, isTls, requiresTls, routes, session } = first;
    const name = virtualHostName(first.host, port);
    const from = [port, isTls, requiresTls, session, ...settings, ...routes, ...domains];
    const make = () => hostRecipe(routes.flat(), { name, port, isTls, requiresTls, session, ...shared, domains });
    // Without routes it only redirects.
    return routes[0] === undefined ? make() : kept(routes[0], `host ${name}`, from, make);
  });
  return recipes.sort((a, b) => compareText(a.name, b.name));
}

function hostRecipe(
  all: readonly ApplicableRoute[],
  fixed: Omit<RoutedHostInput, keyof ReturnType<typeof routeLists>>,
): Recipe {
  const sorted = [
    ...all.filter(({ match }) => !takesEveryRequest(match)),
    ...all.filter(({ match }) => takesEveryRequest(match)),
  ];
  return recipe({ name: fixed.name, input: { ...routeLists(sorted), ...fixed }, build: routedHost });
}

function* gatewayHosts(
  snapshot: Snapshot,
  view: GatewayView,
  servers: readonly RouterServer[],
): Steps<ReadonlyMap<string, GatewayHost>> {
  const hosts = new Map<string, GatewayHost>();
  const known = new Map<string, readonly ApplicableRoute[]>();
  const hostOf = (name: string, { server }: RouterServer): GatewayHost => {
    const host = name.toLowerCase();
    const found = hosts.get(host) ?? {
      host,
      port: server.port.number,
      isTls: server.tls !== undefined,
      routes: [],
      requiresTls: false,
      session: snapshot.features.sessionFilter ? visibleServices(snapshot, view).byHost.get(host)?.session : undefined,
    };
    found.requiresTls ||= server.tls?.httpsRedirect === true;
    hosts.set(host, found);
    return found;
  };
  const { mesh, features, services, destinationRules } = snapshot;
  for (const server of servers) {
    const place = `routes ${view.key} ${server.gateway} ${server.server.port.number}`;
    const hostsPlace = `hosts ${place}`;
    const from = [mesh, features, services, destinationRules];
    for (const virtualService of virtualServicesOf(snapshot, server.gateway, view.namespace)) {
      const { metadata } = virtualService.object;
      const own = kept(virtualService, hostsPlace, server.hosts, () =>
        intersectHosts(hostsForNamespace(server.hosts, metadata.namespace), virtualService.hosts),
      );
      if (own.length === 0) continue;
      const key = `${server.gateway} ${metadata.namespace}/${metadata.name}`;
      const routes =
        known.get(key) ?? kept(virtualService, place, from, () => routesOn(snapshot, view, { server, virtualService }));
      known.set(key, routes);
      if (routes.length > 0) for (const host of own) hostOf(host, server).routes.push(routes);
      yield;
    }
    if (server.server.tls?.httpsRedirect === true) {
      for (const host of server.hosts) hostOf(host.split("/").at(-1) ?? host, server);
    }
  }
  return hosts;
}

interface Bound {
  readonly server: RouterServer;
  readonly virtualService: BoundVirtualService;
}

function routesOn(
  snapshot: Snapshot,
  view: GatewayView,
  { server, virtualService }: Bound,
): readonly ApplicableRoute[] {
  return applicableRoutes(snapshot, virtualService, {
    view,
    gateway: server.gateway,
    port: server.server.port.number,
    serviceOf: (hostname, from) => serviceFor(snapshot, view, { hostname, namespace: from.object.metadata.namespace }),
    prefersOnlyPort: true,
  });
}

/** The service of the virtual service's own namespace, if the router sees it; else the one the router sees. */
function serviceFor(
  snapshot: Snapshot,
  view: GatewayView,
  { hostname, namespace }: { readonly hostname: string; readonly namespace: string },
): Service | undefined {
  const near = servicesOfHost(snapshot, hostname).get(namespace);
  const fallback = snapshot.mesh.defaultServiceExportTo;
  const isSeen = near && isVisible(near.exportTo, { home: near.namespace, namespace: view.namespace, fallback });
  return isSeen ? near : visibleServices(snapshot, view).byHost.get(hostname);
}

interface Collapsed {
  readonly first: GatewayHost;
  readonly domains: string[];
}

/** Hosts with the very same routes are one virtual host: routes are large, and a virtual service may have many hosts. */
function collapse(hosts: readonly GatewayHost[]): readonly Collapsed[] {
  const groups: Collapsed[] = [];
  const byRoutes = new Map<unknown, Collapsed[]>();
  for (const host of hosts) {
    const [routes] = host.routes;
    const alike = byRoutes.get(routes) ?? [];
    const same = alike.findLast(({ first }) => haveSameRoutes(first, host));
    if (same?.first.requiresTls === host.requiresTls) {
      same.domains.push(host.host);
      continue;
    }
    const group = { first: host, domains: [host.host] };
    groups.push(group);
    byRoutes.set(routes, [...alike, group]);
  }
  return groups;
}

function haveSameRoutes(a: GatewayHost, b: GatewayHost): boolean {
  return a.routes.length === b.routes.length && a.routes.every((routes, i) => routes === b.routes[i]);
}
