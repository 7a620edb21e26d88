/** Recipes of the routes towards services. */
import type { Steps } from "#lib/async/steps.ts";
import { ALLOW_ANY, HTTP_PROXY_ROUTES } from "../names/names.ts";
import { kept, keptSteps } from "../recipes/indexes.ts";
import { type Recipe, recipe } from "../recipes/recipe.ts";
import { sidecarNamed, unknownTarget } from "../scope/sidecars.ts";
import { UNIX_PREFIX } from "../traits/address.ts";
import type { OutboundView } from "../views/views.ts";
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
    const traits = hostTraits(snapshot, view);
    return { hosts, recipes: hosts.map((host) => hostRecipe(host, traits)) };
  });
}

/** The routes of a listener that only one service has: whatever host is asked for there, that service is meant. */
function ownHosts(
  snapshot: RouteSnapshot,
  view: OutboundView,
  { hosts, hostname }: { readonly hosts: readonly OutboundHost[]; readonly hostname: string },
): readonly Recipe[] {
  const own = hosts.filter(({ domains }) => domains.includes(hostname));
  const traits = hostTraits(snapshot, view);
  return own.map((host) => hostRecipe({ ...host, domains: own.length === 1 ? ["*"] : host.domains }, traits));
}

/** The same as long as all that it is made from is: most hosts are of services that did not change. */
function hostRecipe(host: OutboundHost, traits: ReturnType<typeof hostTraits>): Recipe {
  const { name, hostname, domains, routes, hash, session, port } = host;
  return kept(domains, name, [traits, hostname, routes, hash, session, port], () => {
    const own = { ...traits.ofAll, name, domains, port, session };
    if (routes === undefined) return recipe({ name, input: { ...own, hostname, hash }, build: serviceHost });
    return recipe({ name, input: { ...own, ...traits.ofRouted, ...routeLists(routes) }, build: routedHost });
  });
}

/** What the hosts of a view have in common: the same object as long as it says the same. */
function hostTraits({ mesh, features }: RouteSnapshot, view: OutboundView) {
  const [attemptCount, xForwardedHost] = [countsAttempts(view), forwardsHost(view)];
  const { defaultHttpRetryPolicy: retries } = mesh;
  const { lackedFields } = view.traits.http;
  const { shadowSuffix } = features;
  const fixed = { isTls: false, requiresTls: false, offersHttp3: false };
  return kept(
    mesh,
    `hosts ${attemptCount} ${xForwardedHost} ${lackedFields}`,
    [retries, lackedFields, shadowSuffix],
    () => ({
      ofAll: { attemptCount, retries },
      ofRouted: { ...fixed, xForwardedHost, shadowSuffix, lackedFields },
    }),
  );
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
