/** Which virtual hosts a port has, and which names each of them gets. */

import type { ConsistentHash } from "#config/kinds/destination-rule/schema.ts";
import { MESH_GATEWAY } from "#config/kinds/virtual-service/gateway-name.ts";
import { hostsMatch, isWildcard } from "#config/terms/host.ts";
import { ITEMS_PER_STEP, type Steps } from "#lib/async/steps.ts";
import { compareText } from "#lib/text/compare-text.ts";
import { connectedPort, isHttp, type Service, type ServicePort, type Session } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { virtualHostName } from "../names/names.ts";
import { kept } from "../recipes/indexes.ts";
import { ruleInScope } from "../scope/destination-rules.ts";
import { type EgressListener, scopeOf, servicesInScope } from "../scope/egress.ts";
import { type BoundVirtualService, finderOf } from "../scope/virtual-services.ts";
import type { OutboundView } from "../views/views.ts";
import { type ApplicableRoute, applicableRoutes } from "./applicable.ts";
import { hostDomains, type ServiceDomains, serviceDomains, withPort } from "./domains.ts";

/** The part of a snapshot that routes depend on: endpoints come and go without them. */
export type RouteSnapshot = Pick<
  Snapshot,
  "mesh" | "features" | "services" | "virtualServices" | "destinationRules" | "sidecars"
>;

/** The port whose routes are asked for; 0 for the socket file `bind`. */
export interface RoutePlace {
  readonly port: number;
  readonly bind: string;
  /** Stands for the place, and for all of the view that its hosts depend on. */
  readonly key: string;
}

/** A virtual host with its names. */
export interface OutboundHost {
  readonly name: string;
  readonly hostname: string;
  readonly domains: readonly string[];
  /** Routes of a virtual service; without them all requests go to the service itself. */
  readonly routes: readonly ApplicableRoute[] | undefined;
  /** How the service's endpoints are chosen, where a rule says by hash. */
  readonly hash: ConsistentHash | undefined;
  /** How requests stay with one endpoint of the service. */
  readonly session: Session | undefined;
  /** The port that is called: of the service, or for routes that of the listener. */
  readonly port: number;
}

/** The virtual hosts of a port, in order of their names. */
export function* outboundHosts(
  snapshot: RouteSnapshot,
  view: OutboundView,
  place: RoutePlace,
): Steps<readonly OutboundHost[]> {
  const on = yield* calledOn(snapshot, view, place);
  if (on === undefined) return [];
  const { services, listener, port } = on;
  const namesOf = ({ domains }: PortService, number: number) => (port === 0 ? withPort(domains, number) : domains);
  const claimed = new Set<string>();
  const candidates: Candidate[] = [];
  for (const virtualService of relevant(on)) {
    yield;
    const routes = meshRoutes(snapshot, view, { virtualService, port, key: place.key });
    if (routes.length === 0) continue;
    const { hosts, matched } = splitHosts(virtualService, services, finderOf(listener.virtualServices));
    const usable = matched.filter(({ ports }) => ports.length > 0);
    if (usable.length === 0 && port !== 80) continue;
    for (const { service } of usable) claimed.add(service.hostname);
    const ports = port === 0 ? usualFirst(usable) : [port];
    for (const number of ports) {
      const reached = usable.filter((one) => one.ports.some((each) => each.port === number));
      candidates.push(
        ...hosts.map((hostname) => ({ hostname, routes, domains: hostDomains(hostname), number })),
        ...reached.map((one) => ({
          hostname: one.service.hostname,
          routes,
          domains: namesOf(one, number),
          session: sessionOf(snapshot, one),
          number,
        })),
      );
    }
  }
  let count = 0;
  for (const called of services.values()) {
    if (count++ % ITEMS_PER_STEP === 0) yield;
    const { service, ports } = called;
    if (claimed.has(service.hostname) || service.resolution === "alias") continue;
    for (const { port: number } of ports) {
      const hash = hashOf(snapshot, view, { service, port: number });
      const session = sessionOf(snapshot, called);
      candidates.push({ hostname: service.hostname, domains: namesOf(called, number), hash, session, number });
    }
  }
  const hosts = port === 0 ? anyPort(candidates) : settle(candidates, port);
  return hosts.sort((a, b) => compareText(a.name, b.name));
}

/** Ports of all of them. Names without a port mean 80 where one of them has it, so it comes first. */
function usualFirst(services: readonly PortService[]): readonly number[] {
  const ports = new Set(services.flatMap((one) => one.ports.map(({ port }) => port)));
  return ports.has(80) ? [80, ...ports.difference(new Set([80]))] : [...ports];
}

interface Candidate {
  readonly hostname: string;
  readonly domains: ServiceDomains;
  readonly routes?: readonly ApplicableRoute[];
  readonly hash?: ConsistentHash | undefined;
  readonly session?: Session | undefined;
  /** The port that is part of its name. */
  readonly number: number;
}

/** What can be called on a port. */
interface Called {
  /** 0 where requests tell the port themselves: to a socket file, or to an HTTP proxy. */
  readonly port: number;
  readonly listener: EgressListener;
  readonly services: ReadonlyMap<string, PortService>;
}

interface PortService {
  readonly service: Service;
  /** Those that take HTTP; all of them where the port is not known. */
  readonly ports: readonly ServicePort[];
  readonly domains: ServiceDomains;
}

function* calledOn(snapshot: RouteSnapshot, view: OutboundView, { port, bind }: RoutePlace): Steps<Called | undefined> {
  const { listeners } = scopeOf(snapshot, view);
  const listener = listeners.find((one) => {
    return one.port === undefined || (one.port.port === port && (port !== 0 || one.bind === bind));
  });
  if (listener === undefined) return undefined;
  const number = listener.port?.protocol === "HTTP_PROXY" ? 0 : port;
  return { port: number, listener, services: yield* servicesOn(listener, view, number) };
}

function meshRoutes(
  snapshot: RouteSnapshot,
  view: OutboundView,
  {
    virtualService,
    port,
    key,
  }: Pick<Called, "port"> & Pick<RoutePlace, "key"> & { readonly virtualService: BoundVirtualService },
): readonly ApplicableRoute[] {
  const services = servicesInScope(snapshot, view);
  const { mesh, features, destinationRules } = snapshot;
  return kept(virtualService, key, [port, mesh, features, services, destinationRules], () =>
    applicableRoutes(snapshot, virtualService, {
      view,
      gateway: MESH_GATEWAY,
      port,
      serviceOf: (hostname) => services.byHost.get(hostname),
      prefersOnlyPort: port === 0,
    }),
  );
}

function isRoutable({ protocol }: ServicePort): boolean {
  return isHttp(protocol) || protocol === "Unsupported";
}

function* servicesOn(
  listener: EgressListener,
  view: OutboundView,
  number: number,
): Steps<ReadonlyMap<string, PortService>> {
  const { autoAddresses, listener: switches } = view.traits;
  const traits = { ...switches, autoAddresses, anyPort: number === 0 };
  const found = new Map<string, PortService>();
  let count = 0;
  for (const service of listener.services) {
    if (count++ % ITEMS_PER_STEP === 0) yield;
    const ports = portsOn(service, number);
    if (ports === undefined) continue;
    const domains = serviceDomains(declarationOn(service, number), view.dnsDomain, traits);
    found.set(domains.lower[0] ?? "", { service, ports, domains });
  }
  return found;
}

/** Of several declarations the last with the port says by which addresses it is called there. */
function declarationOn(service: Service, number: number): Service {
  return service.declarations?.findLast((declared) => connectedPort(declared, number) !== undefined) ?? service;
}

/** The routable ports of a service that are called on a port; undefined where it has nothing there. */
function portsOn(service: Service, number: number): readonly ServicePort[] | undefined {
  const { ports } = service;
  if (number === 0) return ports.length === 0 ? undefined : ports.filter(isRoutable);
  const port = connectedPort(service, number);
  return port && (isRoutable(port) ? [port] : []);
}

/** Virtual services that speak for a service of the port; on port 80 also those for hosts that no service has. */
function relevant({ services, listener, port }: Called): readonly BoundVirtualService[] {
  const all = listener.virtualServices;
  if (port === 80) return all;
  const wildcards = [...services.keys()].filter(isWildcard);
  return all.filter(({ hosts }) =>
    hosts.some((name) => {
      const host = name.toLowerCase();
      if (services.has(host)) return true;
      const others = isWildcard(host) ? [...services.keys()] : wildcards;
      return others.some((other) => hostsMatch(host, other));
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

function hashOf(
  snapshot: RouteSnapshot,
  view: OutboundView,
  { service, port }: { readonly service: Service; readonly port: number },
): ConsistentHash | undefined {
  const policy = ruleInScope(snapshot, service.hostname, view)?.spec.trafficPolicy;
  const ofPort = policy?.portLevelSettings?.find((settings) => settings.port?.number === port);
  return ofPort?.loadBalancer?.consistentHash ?? policy?.loadBalancer?.consistentHash;
}

function sessionOf({ features }: RouteSnapshot, { service }: PortService): Session | undefined {
  return features.sessionFilter ? service.session : undefined;
}

/** The port 80 is what is meant without one, if it is the first of the service; all others have to be named. */
function anyPort(candidates: readonly Candidate[]): OutboundHost[] {
  return settle(candidates, 0).flatMap((host) => {
    if (host.name.endsWith(":80")) return [host];
    const domains = host.domains.filter((domain) => domain.includes(":"));
    return domains.length === 0 ? [] : [{ ...host, domains }];
  });
}

/** Gives each name to the first that claims it: Envoy refuses a name that two virtual hosts have. */
function settle(candidates: readonly Candidate[], port: number): OutboundHost[] {
  const full = new Set(candidates.map(({ hostname }) => hostname));
  const names = new Set<string>();
  const taken = new Set<string>();
  const settled: OutboundHost[] = [];
  for (const { hostname, domains, routes, hash, session, number } of candidates) {
    const name = virtualHostName(hostname, number);
    if (names.has(name)) continue;
    names.add(name);
    const free = takeFree(domains, taken, full);
    if (free.length === 0) continue;
    const called = routes === undefined ? number : port;
    settled.push({ name, hostname, domains: free, routes, hash, session, port: called });
  }
  return settled;
}

/** Takes the names that are free; all of them are the same list as before, which is cheaper to compare. */
function takeFree(
  { all, lower, short }: ServiceDomains,
  taken: Set<string>,
  full: ReadonlySet<string>,
): readonly string[] {
  let some: string[] | undefined;
  for (let i = 0; i < all.length; i++) {
    const domain = all[i] ?? "";
    const key = lower[i] ?? domain;
    if (taken.has(key) || (full.has(domain) && short.has(domain))) {
      some ??= all.slice(0, i);
    } else {
      taken.add(key);
      some?.push(domain);
    }
  }
  return some ?? all;
}
