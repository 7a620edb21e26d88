/** Recipes of the routes towards services. */
import type { Steps } from "#lib/async/steps.ts";
import { kept, keptSteps } from "../indexes.ts";
import { UNIX_PREFIX } from "../listeners/address.ts";
import { ALLOW_ANY, HTTP_PROXY_ROUTES } from "../names.ts";
import { type Recipe, recipe } from "../recipe.ts";
import { sidecarNamed, unknownTarget } from "../scope/sidecars.ts";
import type { OutboundView } from "../views.ts";
import { routeLists } from "./applicable.ts";
import { type OutboundHost, outboundHosts, type RoutePlace, type RouteSnapshot } from "./outbound-hosts.ts";
import { routeConfiguration, routedHost, serviceHost, unknownHost } from "./virtual-host.ts";

const VIRTUAL_HOSTS = 2;

/** The routes that listeners fetch: by a port for all services on it, or by a host and port for one. */
export function* planOutboundRoutes(
  snapshot: RouteSnapshot,
  view: OutboundView,
  names: ReadonlySet<string>,
): Steps<readonly Recipe[]> {
  const rest = unknownHosts(snapshot, view);
  const planned: Recipe[] = [];
  for (const name of names) {
    const isForAnyPort = name.startsWith(UNIX_PREFIX) || name === HTTP_PROXY_ROUTES;
    const at = isForAnyPort ? -1 : name.lastIndexOf(":");
    const place = isForAnyPort ? { port: 0, bind: name } : { port: Number(name.slice(at + 1)), bind: "" };
    const { hosts, recipes } = yield* hostsOn(snapshot, view, place);
    const parts = at === -1 ? [...recipes, rest] : ownHosts(snapshot, view, { hosts, hostname: name.slice(0, at) });
    const own = { name, input: { name }, build: routeConfiguration };
    planned.push(recipe({ ...own, parts: { field: VIRTUAL_HOSTS, recipes: parts } }));
  }
  return planned;
}

interface PortHosts {
  readonly hosts: readonly OutboundHost[];
  readonly recipes: readonly Recipe[];
}

/** Most changes in a mesh are of endpoints, which routes do not depend on: the plan of a port outlives them. */
function* hostsOn(
  snapshot: RouteSnapshot,
  view: OutboundView,
  { port, bind }: Omit<RoutePlace, "key">,
): Steps<PortHosts> {
  const { mesh, features, services, virtualServices, destinationRules, sidecars } = snapshot;
  const { role, namespace, dnsDomain, traits, selectedRules, sourceConditions, sidecar } = view;
  const of = [
    role,
    namespace,
    sidecar,
    dnsDomain,
    traits.listener.ipMode,
    traits.autoAddresses,
    selectedRules,
    sourceConditions,
  ];
  const key = `hosts ${bind || port} ${JSON.stringify([of, traits.http.headers, traits.http.lackedFields])}`;
  const from = [mesh, features, virtualServices, destinationRules, sidecars];
  return yield* keptSteps(services, { key, from }, function* () {
    const hosts = yield* outboundHosts(snapshot, view, { port, bind, key });
    yield;
    return { hosts, recipes: hosts.map((host) => hostRecipe(snapshot, view, host)) };
  });
}

/** The routes of a listener that only one service has: whatever host is asked for there, that service is meant. */
function ownHosts(
  snapshot: RouteSnapshot,
  view: OutboundView,
  { hosts, hostname }: { readonly hosts: readonly OutboundHost[]; readonly hostname: string },
): readonly Recipe[] {
  const own = hosts.filter(({ domains }) => domains.includes(hostname));
  return own.map((host) => hostRecipe(snapshot, view, { ...host, domains: own.length === 1 ? ["*"] : host.domains }));
}

/** The same as long as all that it is made from is: most hosts are of services that did not change. */
function hostRecipe(snapshot: RouteSnapshot, view: OutboundView, host: OutboundHost): Recipe {
  const { name, hostname, domains, routes, hash, session, port } = host;
  const fixed = { attemptCount: countsAttempts(view), retries: snapshot.mesh.defaultHttpRetryPolicy };
  const others = {
    isTls: false,
    requiresTls: false,
    xForwardedHost: forwardsHost(view),
    offersHttp3: false,
    shadowSuffix: snapshot.features.shadowSuffix,
    lackedFields: view.traits.http.lackedFields,
  };
  const from = [hostname, routes, hash, session, port, ...Object.values(fixed), ...Object.values(others)];
  return kept(domains, name, from, () => {
    const own = { ...fixed, name, domains, port, session };
    if (routes === undefined) return recipe({ name, input: { ...own, hostname, hash }, build: serviceHost });
    return recipe({ name, input: { ...own, ...others, ...routeLists(routes) }, build: routedHost });
  });
}

function unknownHosts(snapshot: RouteSnapshot, view: OutboundView): Recipe {
  const input = {
    cluster: unknownTarget(snapshot, sidecarNamed(snapshot, view.sidecar)),
    attemptCount: countsAttempts(view),
    xForwardedHost: forwardsHost(view),
  };
  return recipe({ name: ALLOW_ANY, input, build: unknownHost });
}

function countsAttempts({ traits }: OutboundView): boolean {
  return traits.http.headers.attemptCount?.disabled !== true;
}

function forwardsHost({ traits }: OutboundView): boolean {
  return traits.http.headers.xForwardedHost?.enabled === true;
}
