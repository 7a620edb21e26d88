/** Recipes of the routes towards services. */
import { isHttp, type Service, type ServicePort } from "#model/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { hostsMatch, isWildcard } from "../hosts.ts";
import { ALLOW_ANY, hostInUrl, virtualHostName } from "../names.ts";
import { type Recipe, recipe } from "../recipe.ts";
import { destinationRuleFor } from "../scope/destination-rules.ts";
import { compareText } from "../scope/order.ts";
import { visibleServices } from "../scope/services.ts";
import { type BoundVirtualService, finderOf, MESH_GATEWAY, virtualServicesOf } from "../scope/virtual-services.ts";
import type { OutboundView } from "../views.ts";
import { type ApplicableRoute, applicableRoutes, routeLists } from "./applicable.ts";
import { type ServiceDomains, serviceDomains } from "./domains.ts";
import { routeConfiguration, routedHost, serviceHost, unknownHost } from "./virtual-host.ts";

const VIRTUAL_HOSTS = 2;

/** The names of the routes that listeners fetch: a port, or a host and port. */
export function planOutboundRoutes(
  snapshot: Snapshot,
  view: OutboundView,
  names: ReadonlySet<string>,
): readonly Recipe[] {
  const hostsOfPort = new Map<number, readonly HostPlan[]>();
  const hostsOn = (port: number) => {
    const hosts = hostsOfPort.get(port) ?? virtualHosts(snapshot, view, port);
    hostsOfPort.set(port, hosts);
    return hosts;
  };
  const rest = recipe({
    name: ALLOW_ANY,
    input: {
      isAllowed: snapshot.mesh.outboundTrafficPolicy.mode === "ALLOW_ANY",
      attemptCount: countsAttempts(view),
      xForwardedHost: view.traits.http.headers.xForwardedHost?.enabled === true,
    },
    build: unknownHost,
  });
  return [...names].map((name) => {
    const at = name.lastIndexOf(":");
    const hosts = hostsOn(Number(name.slice(at + 1)));
    const recipes = at === -1 ? [...hosts.map(hostRecipe), rest] : ownHosts(hosts, name.slice(0, at)).map(hostRecipe);
    return recipe({ name, input: { name }, build: routeConfiguration, parts: { field: VIRTUAL_HOSTS, recipes } });
  });
}

/** A virtual host to be: its names, and how to build it once they are settled. */
interface HostPlan {
  readonly name: string;
  readonly domains: readonly string[];
  readonly recipeFor: (domains: readonly string[]) => Recipe;
}

function hostRecipe({ domains, recipeFor }: HostPlan): Recipe {
  return recipeFor(domains);
}

/** The routes of a listener that only one service has: whatever host is asked for there, that service is meant. */
function ownHosts(hosts: readonly HostPlan[], hostname: string): readonly HostPlan[] {
  const own = hosts.filter(({ domains }) => domains.includes(hostname));
  return own.length === 1 ? own.map((host) => ({ ...host, domains: ["*"] })) : own;
}

interface PortService {
  readonly service: Service;
  readonly port: ServicePort;
  readonly domains: ServiceDomains;
}

/** The virtual hosts of a port, in order of their names. */
function virtualHosts(snapshot: Snapshot, view: OutboundView, port: number): readonly HostPlan[] {
  const services = servicesOn(snapshot, view, port);
  const claimed = new Set<string>();
  const candidates: Candidate[] = [];
  for (const virtualService of relevant(snapshot, view, { services, port })) {
    const routes = applicableRoutes(snapshot, virtualService, {
      view,
      gateway: MESH_GATEWAY,
      port,
      serviceOf: (hostname) => visibleServices(snapshot, view).byHost.get(hostname),
      prefersOnlyPort: false,
    });
    if (routes.length === 0) continue;
    const { hosts, matched } = splitHosts(virtualService, services, finderOf(meshVirtualServices(snapshot, view)));
    const usable = matched.filter((one) => isRoutable(one.port));
    if (usable.length === 0 && !(port === 80 && matched.length === 0)) continue;
    for (const { service } of usable) claimed.add(service.hostname);
    candidates.push(...hosts.map((host): Candidate => ({ hostname: host, routes, domains: hostDomains(host) })));
    candidates.push(...usable.map(({ service, domains }) => ({ hostname: service.hostname, routes, domains })));
  }
  for (const { service, port: servicePort, domains } of services.values()) {
    const isFree = !claimed.has(service.hostname) && service.resolution !== "alias";
    if (isFree && isRoutable(servicePort)) candidates.push({ hostname: service.hostname, service, domains });
  }
  return settle(snapshot, view, { candidates, port });
}

function meshVirtualServices(snapshot: Snapshot, view: OutboundView): readonly BoundVirtualService[] {
  return virtualServicesOf(snapshot, MESH_GATEWAY, view.namespace);
}

function isRoutable({ protocol }: ServicePort): boolean {
  return isHttp(protocol) || protocol === "Unsupported";
}

function servicesOn(snapshot: Snapshot, view: OutboundView, number: number): ReadonlyMap<string, PortService> {
  const { autoAddresses, listener } = view.traits;
  const found = new Map<string, PortService>();
  for (const service of visibleServices(snapshot, view).list) {
    const port = service.ports.find((each) => each.port === number);
    if (port === undefined) continue;
    const domains = serviceDomains(service, view.dnsDomain, { ipMode: listener.ipMode, autoAddresses });
    found.set(service.hostname.toLowerCase(), { service, port, domains });
  }
  return found;
}

/** Virtual services that speak for a service of the port; on port 80 also those for hosts that no service has. */
function relevant(
  snapshot: Snapshot,
  view: OutboundView,
  { services, port }: { readonly services: ReadonlyMap<string, PortService>; readonly port: number },
): readonly BoundVirtualService[] {
  const all = meshVirtualServices(snapshot, view);
  if (port === 80) return all;
  const wildcards = [...services.keys()].filter(isWildcard);
  return all.filter(({ hosts }) =>
    hosts.some((name) => {
      const host = name.toLowerCase();
      if (services.has(host)) return true;
      const others = isWildcard(host) ? services.keys() : wildcards;
      return [...others].some((other) => hostsMatch(host, other));
    }),
  );
}

interface SplitHosts {
  /** Hosts that no service of the port has. */
  readonly hosts: readonly string[];
  readonly matched: readonly PortService[];
}

/** Of several wildcards that cover a service, the longest speaks for it. */
function splitHosts(
  virtualService: BoundVirtualService,
  services: ReadonlyMap<string, PortService>,
  finder: ReturnType<typeof finderOf>,
): SplitHosts {
  const hosts: string[] = [];
  const matched: PortService[] = [];
  const names = virtualService.hosts.map((host) => host.toLowerCase());
  for (const host of names.filter((name) => !isWildcard(name))) {
    const service = services.get(host);
    if (service === undefined) hosts.push(host);
    else matched.push(service);
  }
  for (const host of names.filter(isWildcard)) {
    const covered = [...services.values()].filter(({ service }) => hostsMatch(service.hostname, host));
    if (covered.length === 0) hosts.push(host);
    matched.push(...covered.filter(({ service }) => finder.find(service.hostname) === virtualService));
  }
  return { hosts, matched };
}

function hostDomains(host: string): ServiceDomains {
  return { all: [hostInUrl(host)], short: [] };
}

interface Candidate {
  readonly hostname: string;
  readonly domains: ServiceDomains;
  /** Of a virtual service; else the service itself is meant. */
  readonly routes?: readonly ApplicableRoute[];
  readonly service?: Service;
}

/** Gives each name to the first that claims it: Envoy refuses a name that two virtual hosts have. */
function settle(
  snapshot: Snapshot,
  view: OutboundView,
  { candidates, port }: { readonly candidates: readonly Candidate[]; readonly port: number },
): readonly HostPlan[] {
  const full = new Set(candidates.map(({ hostname }) => hostname));
  const names = new Set<string>();
  const taken = new Set<string>();
  const plans: HostPlan[] = [];
  for (const candidate of candidates) {
    const name = virtualHostName(candidate.hostname, port);
    if (names.has(name)) continue;
    names.add(name);
    const short = new Set(candidate.domains.short);
    const domains = candidate.domains.all.filter((domain) => {
      const key = domain.toLowerCase();
      if (domain === "" || taken.has(key) || (short.has(domain) && full.has(domain))) return false;
      taken.add(key);
      return true;
    });
    if (domains.length > 0)
      plans.push({ name, domains, recipeFor: recipeOf(snapshot, view, { candidate, name, port }) });
  }
  return plans.sort((a, b) => compareText(a.name, b.name));
}

function recipeOf(
  snapshot: Snapshot,
  view: OutboundView,
  { candidate, name, port }: { readonly candidate: Candidate; readonly name: string; readonly port: number },
): HostPlan["recipeFor"] {
  const { routes, service, hostname } = candidate;
  const attemptCount = countsAttempts(view);
  const retries = snapshot.mesh.defaultHttpRetryPolicy;
  if (routes === undefined) {
    const policy = service && destinationRuleFor(snapshot, service, view)?.spec.trafficPolicy;
    const ofPort = policy?.portLevelSettings?.find((settings) => settings.port?.number === port);
    const hash = ofPort?.loadBalancer?.consistentHash ?? policy?.loadBalancer?.consistentHash;
    return (domains) =>
      recipe({ name, input: { name, domains, attemptCount, hostname, port, hash, retries }, build: serviceHost });
  }
  const xForwardedHost = view.traits.http.headers.xForwardedHost?.enabled === true;
  const fixed = {
    ...routeLists(routes),
    name,
    attemptCount,
    port,
    isTls: false,
    requiresTls: false,
    retries,
    xForwardedHost,
  };
  return (domains) => recipe({ name, input: { ...fixed, domains }, build: routedHost });
}

function countsAttempts(view: OutboundView): boolean {
  return view.traits.http.headers.attemptCount?.disabled !== true;
}
