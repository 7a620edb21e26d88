/** Which virtual hosts a port has, and which names each of them gets. */

import { MESH_GATEWAY } from "#config/gateway-name.ts";
import { hostsMatch, isWildcard } from "#config/host.ts";
import type { ConsistentHash } from "#config/kinds/destination-rule.ts";
import { isHttp, type Service, type ServicePort } from "#model/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { virtualHostName } from "../names.ts";
import { destinationRuleFor } from "../scope/destination-rules.ts";
import { compareText } from "../scope/order.ts";
import { visibleServices } from "../scope/services.ts";
import { type BoundVirtualService, finderOf, virtualServicesOf } from "../scope/virtual-services.ts";
import type { OutboundView } from "../views.ts";
import { type ApplicableRoute, applicableRoutes } from "./applicable.ts";
import { hostDomains, type ServiceDomains, serviceDomains } from "./domains.ts";

/** The part of a snapshot that routes depend on: endpoints come and go without them. */
export type RouteSnapshot = Pick<Snapshot, "mesh" | "features" | "services" | "virtualServices" | "destinationRules">;

/** A virtual host with its names. */
export interface OutboundHost {
  readonly name: string;
  readonly hostname: string;
  readonly domains: readonly string[];
  /** Routes of a virtual service; without them all requests go to the service itself. */
  readonly routes: readonly ApplicableRoute[] | undefined;
  /** How the service's endpoints are chosen, where a rule says by hash. */
  readonly hash: ConsistentHash | undefined;
}

/** The virtual hosts of a port, in order of their names. */
export function outboundHosts(snapshot: RouteSnapshot, view: OutboundView, port: number): readonly OutboundHost[] {
  const services = servicesOn(snapshot, view, port);
  const claimed = new Set<string>();
  const candidates: Candidate[] = [];
  for (const virtualService of relevant(snapshot, view, { services, port })) {
    const routes = meshRoutes(snapshot, view, { virtualService, port });
    if (routes.length === 0) continue;
    const { hosts, matched } = splitHosts(virtualService, services, finderOf(meshVirtualServices(snapshot, view)));
    const usable = matched.filter((one) => isRoutable(one.port));
    if (usable.length === 0 && port !== 80) continue;
    for (const { service } of usable) claimed.add(service.hostname);
    candidates.push(...hosts.map((hostname) => ({ hostname, routes, domains: hostDomains(hostname) })));
    candidates.push(...usable.map(({ service, domains }) => ({ hostname: service.hostname, routes, domains })));
  }
  for (const { service, port: servicePort, domains } of services.values()) {
    const isFree = !claimed.has(service.hostname) && service.resolution !== "alias";
    if (!isFree || !isRoutable(servicePort)) continue;
    candidates.push({ hostname: service.hostname, domains, hash: hashOf(snapshot, view, { service, port }) });
  }
  return settle(candidates, port).sort((a, b) => compareText(a.name, b.name));
}

interface Candidate {
  readonly hostname: string;
  readonly domains: ServiceDomains;
  readonly routes?: readonly ApplicableRoute[];
  readonly hash?: ConsistentHash | undefined;
}

interface PortService {
  readonly service: Service;
  readonly port: ServicePort;
  readonly domains: ServiceDomains;
}

function meshVirtualServices(snapshot: RouteSnapshot, view: OutboundView): readonly BoundVirtualService[] {
  return virtualServicesOf(snapshot, MESH_GATEWAY, view.namespace);
}

function meshRoutes(
  snapshot: RouteSnapshot,
  view: OutboundView,
  { virtualService, port }: { readonly virtualService: BoundVirtualService; readonly port: number },
): readonly ApplicableRoute[] {
  return applicableRoutes(snapshot, virtualService, {
    view,
    gateway: MESH_GATEWAY,
    port,
    serviceOf: (hostname) => visibleServices(snapshot, view).byHost.get(hostname),
    prefersOnlyPort: false,
  });
}

function isRoutable({ protocol }: ServicePort): boolean {
  return isHttp(protocol) || protocol === "Unsupported";
}

function servicesOn(snapshot: RouteSnapshot, view: OutboundView, number: number): ReadonlyMap<string, PortService> {
  const { autoAddresses, listener } = view.traits;
  const traits = { ipMode: listener.ipMode, autoAddresses };
  const found = new Map<string, PortService>();
  for (const service of visibleServices(snapshot, view).list) {
    const port = service.ports.find((each) => each.port === number);
    if (port === undefined) continue;
    const domains = serviceDomains(service, view.dnsDomain, traits);
    found.set(domains.lower[0] ?? "", { service, port, domains });
  }
  return found;
}

/** Virtual services that speak for a service of the port; on port 80 also those for hosts that no service has. */
function relevant(
  snapshot: RouteSnapshot,
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
  const policy = destinationRuleFor(snapshot, service, view)?.spec.trafficPolicy;
  const ofPort = policy?.portLevelSettings?.find((settings) => settings.port?.number === port);
  return ofPort?.loadBalancer?.consistentHash ?? policy?.loadBalancer?.consistentHash;
}

/** Gives each name to the first that claims it: Envoy refuses a name that two virtual hosts have. */
function settle(candidates: readonly Candidate[], port: number): OutboundHost[] {
  const full = new Set(candidates.map(({ hostname }) => hostname));
  const names = new Set<string>();
  const taken = new Set<string>();
  const settled: OutboundHost[] = [];
  for (const { hostname, domains, routes, hash } of candidates) {
    const name = virtualHostName(hostname, port);
    if (names.has(name)) continue;
    names.add(name);
    const own = domains.all.filter((domain, i) => {
      const key = domains.lower[i] ?? domain;
      const isFree = !taken.has(key) && !(full.has(domain) && domains.short.has(domain));
      if (isFree) taken.add(key);
      return isFree;
    });
    // The same list as before where all names are free, which is cheaper to compare.
    const free = own.length === domains.all.length ? domains.all : own;
    if (free.length > 0) settled.push({ name, hostname, domains: free, routes, hash });
  }
  return settled;
}
