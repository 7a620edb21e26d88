/** Recipes of the routes of a router. */

import { isVisible } from "#config/terms/visibility.ts";
import type { Steps } from "#lib/async/steps.ts";
import { listChanges } from "#lib/collections/list-changes.ts";
import type { Service } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { virtualHostName } from "../names/names.ts";
import { followed, kept } from "../recipes/indexes.ts";
import { type Recipe, recipe } from "../recipes/recipe.ts";
import type { RouterServer, RouterServers } from "../scope/gateways.ts";
import { referencedHosts } from "../scope/referenced-services.ts";
import { servicesOfHost, visibleServices } from "../scope/services.ts";
import { type BoundVirtualService, virtualServicesOf } from "../scope/virtual-services.ts";
import type { GatewayView } from "../views/views.ts";
import { type ApplicableRoute, applicableRoutes, routeLists } from "./applicable.ts";
import { GatewayHosts, type HostMaker } from "./gateway-hosts.ts";
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
    const recipes = yield* virtualHosts(snapshot, view, { name, servers: sharing });
    const parts = { field: VIRTUAL_HOSTS, recipes };
    const whole = () => recipe({ name, input: { name }, build: routeConfiguration, parts });
    planned.push(kept(recipes, name, [], whole));
  }
  return planned;
}

/** Servers that share their routes. */
interface Sharing {
  readonly name: string;
  readonly servers: readonly RouterServer[];
}

type Targets = Pick<Snapshot, "services" | "destinationRules">;

interface Followed {
  readonly from: readonly unknown[];
  /** What tells where routes lead. */
  readonly targets: Targets;
  readonly hosts: GatewayHosts;
}

function* virtualHosts(snapshot: Snapshot, view: GatewayView, { name, servers }: Sharing): Steps<readonly Recipe[]> {
  const [first] = servers;
  if (first === undefined) return [];
  const { mesh, features, services, destinationRules } = snapshot;
  const targets = { services, destinationRules };
  // Hosts may have the sessions of services.
  const from = [servers, mesh, features, ...(features.sessionFilter ? [services] : [])];
  const maker = hostMaker(snapshot, view, servers);
  const gateways = new Set(servers.map(({ gateway }) => gateway));
  const lists = new Map([...gateways].map((one) => [one, virtualServicesOf(snapshot, one, view.namespace)]));
  const { hosts } = yield* followed<Followed>(first.server, `${name} ${view.key}`, function* (last) {
    const known = last?.from.every((one, i) => one === from[i]) ? last : undefined;
    const state = { from, targets, hosts: known?.hosts ?? new GatewayHosts(servers, features.collapseRoutes) };
    const mayLeadElsewhere = known === undefined ? () => false : changedTargets(known.targets, targets);
    yield* state.hosts.follow(lists, { ...maker, mayLeadElsewhere });
    return state;
  });
  return hosts.recipes.length === 0 ? nowhere(first) : hosts.recipes;
}

/** Tells the virtual services whose destinations may be others than before. */
function changedTargets(before: Targets, after: Targets): HostMaker["mayLeadElsewhere"] {
  if (before.destinationRules !== after.destinationRules) return () => true;
  const { removed, added } = listChanges(before.services, after.services);
  const hosts = new Set([...removed, ...added].map(({ hostname }) => hostname));
  if (hosts.size === 0) return () => false;
  return (virtualService) => referencedHosts("", virtualService).some((host) => hosts.has(host));
}

/** Where no virtual service is bound, every request is answered with 404. */
function nowhere({ server }: RouterServer): readonly Recipe[] {
  const name = virtualHostName("blackhole", server.port.number);
  return kept(server, "nowhere", [], () => [
    recipe({ name, input: { name, domains: ["*"], attemptCount: false }, build: emptyHost }),
  ]);
}

function hostMaker(
  snapshot: Snapshot,
  view: GatewayView,
  servers: readonly RouterServer[],
): Omit<HostMaker, "mayLeadElsewhere"> {
  const { mesh, features } = snapshot;
  const { headers, lackedFields } = view.traits.http;
  const shared = {
    attemptCount: headers.attemptCount?.disabled !== true,
    retries: mesh.defaultHttpRetryPolicy,
    xForwardedHost: headers.xForwardedHost?.enabled === true,
    offersHttp3: servers.some(({ speaksHttp3 }) => speaksHttp3),
    shadowSuffix: features.shadowSuffix,
    lackedFields,
  };
  const sessionOf = (host: string) =>
    features.sessionFilter ? visibleServices(snapshot, view).byHost.get(host)?.session : undefined;
  return {
    routesOn: (server, virtualService) => routesOn(snapshot, view, { server, virtualService }),
    recipeOf: ({ host, domains, server: { server }, routes, requiresTls }) => {
      const port = server.port.number;
      const name = virtualHostName(host, port);
      const own = { name, port, isTls: server.tls !== undefined, requiresTls, session: sessionOf(host), domains };
      return hostRecipe(routes, { ...own, ...shared });
    },
  };
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
