/** Where TCP and TLS connections to a service port go, by virtual services or by default. */

import { completeGateway, MESH_GATEWAY } from "#config/kinds/virtual-service/gateway-name.ts";
import type { L4Match, RouteDestination, TlsMatch } from "#config/kinds/virtual-service/schema.ts";
import { completeHost, hostsMatch } from "#config/terms/host.ts";
import type { Service, ServicePort } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { outboundCluster } from "../names/names.ts";
import { statName } from "../names/stat-name.ts";
import { derived, kept } from "../recipes/indexes.ts";
import { otherNames } from "../routes/domains.ts";
import { destinationRuleFor, type RuleViewpoint, ruleInScope } from "../scope/destination-rules.ts";
import { type ScopeViewpoint, servicesInScope } from "../scope/egress.ts";
import { type BoundVirtualService, sourceConditionId } from "../scope/virtual-services.ts";
import type { OutboundView } from "../views/views.ts";
import type { TcpChain } from "./chains.ts";

/** Which service port is asked for, and how it is told from others on the same listener. */
export interface TcpRouteInput {
  readonly service: Service;
  readonly port: ServicePort;
  /** Ranges of addresses that mean this service, where it has no listener of its own. */
  readonly ranges: readonly string[];
  /** The listener is shared by all services of the port: TLS is told apart by the server name. */
  readonly isShared: boolean;
  /** Those that apply where the service is called from. */
  readonly virtualServices: readonly BoundVirtualService[];
}

/** The chains of a service port: one for each way its virtual services tell, or the one to the service itself. */
export function tcpChains(snapshot: Snapshot, view: OutboundView, input: TcpRouteInput): readonly TcpChain[] {
  const virtualServices = tcpVirtualServices("", input.virtualServices).filter(({ hosts }) =>
    hosts.some((host) => hostsMatch(host, input.service.hostname)),
  );
  if (virtualServices.length === 0) return [serviceChain(snapshot, view, input)];
  const isTls = input.port.protocol === "HTTPS" || input.port.protocol === "TLS";
  const routed = isTls
    ? tlsRoutes(snapshot, view, { ...input, virtualServices })
    : tcpRoutes(snapshot, view, { ...input, virtualServices });
  return routed ?? [serviceChain(snapshot, view, input)];
}

/** The virtual services that speak of more than HTTP: few do. */
export const tcpVirtualServices = derived((_: string, virtualServices: readonly BoundVirtualService[]) =>
  virtualServices.filter(({ object: { spec } }) => spec.tcp !== undefined || spec.tls !== undefined),
);

function tlsRoutes(snapshot: Snapshot, view: OutboundView, routing: TcpRouteInput): TcpChain[] | undefined {
  const chains = new Map<string, TcpChain>();
  for (const virtualService of routing.virtualServices) {
    for (const { match = [], route = [] } of virtualService.object.spec.tls ?? []) {
      for (const condition of match.filter((each) => isMet(each, virtualService, view, routing.port.port))) {
        const { sniHosts = [] } = condition;
        const destinationSubnets = subnetsOf(condition, routing.port);
        const key = `${sniHosts}|${destinationSubnets}`;
        const chain = chains.has(key) ? undefined : routeChain(snapshot, view, { route, virtualService, ...routing });
        const ranges = destinationSubnets.length > 0 ? destinationSubnets : routing.ranges;
        if (chain !== undefined) chains.set(key, { ...chain, serverNames: sniHosts, ranges });
      }
    }
  }
  return chains.size === 0 ? undefined : [...chains.values()];
}

function tcpRoutes(snapshot: Snapshot, view: OutboundView, routing: TcpRouteInput): TcpChain[] | undefined {
  const chains: TcpChain[] = [];
  for (const virtualService of routing.virtualServices) {
    for (const { match = [], route = [] } of virtualService.object.spec.tcp ?? []) {
      const met = match.filter((each) => isMet(each, virtualService, view, routing.port.port));
      if (match.length > 0 && met.length === 0) continue;
      const chain = routeChain(snapshot, view, { route, virtualService, ...routing });
      if (chain === undefined) continue;
      const takesAny = match.length === 0 || met.some((each) => subnetsOf(each, routing.port).length === 0);
      if (takesAny) return [...chains, { ...chain, ranges: routing.ranges }];
      const ranges = met.flatMap(({ destinationSubnets = [] }) => destinationSubnets);
      chains.push({ ...chain, origin: undefined, ranges });
    }
  }
  if (chains.length === 0) return undefined;
  const last = serviceChain(snapshot, view, routing);
  const isCovered = chains.some(({ ranges }) => String([...ranges].sort()) === String([...last.ranges].sort()));
  return isCovered ? chains : [...chains, last];
}

/** A socket file knows of no addresses. */
function subnetsOf({ destinationSubnets = [] }: L4Match | TlsMatch, { port }: ServicePort): readonly string[] {
  return port === 0 ? [] : destinationSubnets;
}

/** Whether the conditions hold that are known before any connection comes. */
function isMet(match: L4Match | TlsMatch, { object }: BoundVirtualService, view: OutboundView, port: number): boolean {
  const gateways = match.gateways?.map((gateway) => completeGateway(gateway, object.metadata.namespace)) ?? [];
  return (
    (gateways.length === 0 || gateways.includes(MESH_GATEWAY)) &&
    (match.sourceLabels === undefined || view.sourceConditions.includes(sourceConditionId(match.sourceLabels))) &&
    (!match.port || match.port === port) &&
    (!match.sourceNamespace || match.sourceNamespace === view.namespace)
  );
}

/** A route of a virtual service, called on a port. */
export interface RouteInput {
  readonly route: readonly RouteDestination[];
  readonly virtualService: BoundVirtualService;
  readonly port: ServicePort;
}

/** The chain of one route; undefined when no destination has a weight, which Envoy would refuse. */
export function routeChain(
  snapshot: Snapshot,
  view: ScopeViewpoint & RuleViewpoint,
  input: RouteInput,
): TcpChain | undefined {
  const { virtualService, port } = input;
  const { object, domain } = virtualService;
  const { namespace, name } = object.metadata;
  const { byHost } = servicesInScope(snapshot, view);
  const weighted = input.route.length === 1 ? input.route : input.route.filter(({ weight = 0 }) => weight > 0);
  const targets = weighted.map(({ destination, weight = 0 }) => {
    const hostname = completeHost(destination.host, namespace, domain);
    const service = byHost.get(hostname);
    const onlyPort = service?.ports.length === 1 ? service.ports[0]?.port : undefined;
    const target = destination.port?.number ?? onlyPort ?? port.port;
    return {
      cluster: outboundCluster(service?.aliasOf ?? hostname, target, destination.subset),
      weight,
      service,
      subset: destination.subset,
    };
  });
  const [first] = targets;
  if (first === undefined) return undefined;
  return {
    clusters: targets.map(({ cluster }) => cluster),
    weights: input.route.length === 1 ? [] : targets.map(({ weight }) => weight),
    statPrefix: input.route.length === 1 ? singleStatPrefix(snapshot, port, first) : `${name}.${namespace}`,
    protocol: port.protocol,
    subset: input.route.length === 1 ? (first.subset ?? "") : "",
    rule: first.service && destinationRuleFor(snapshot, first.service, view),
    origin: object,
    serverNames: [],
    ranges: [],
  };
}

function singleStatPrefix(
  { mesh }: Snapshot,
  port: ServicePort,
  { cluster, service, subset = "" }: SingleTarget,
): string {
  if (service === undefined) return cluster;
  return statName(mesh.outboundClusterStatName, { service, port, subset, targetPort: 0, fallback: cluster });
}

interface SingleTarget {
  readonly cluster: string;
  readonly service: Service | undefined;
  readonly subset: string | undefined;
}

/** To the service itself: the same chain as long as nothing of it changes. On a shared listener, TLS of a host is known by its server name. */
function serviceChain(snapshot: Snapshot, view: OutboundView, input: TcpRouteInput): TcpChain {
  const { service, port, ranges, isShared } = input;
  const { mesh } = snapshot;
  const rule = ruleInScope(snapshot, service.hostname, view);
  const isTls = port.protocol === "HTTPS" || port.protocol === "TLS";
  const isNamed = isTls && (isShared || ranges.length > 0);
  const names = isNamed ? serverNames(service, view) : [];
  return kept(service, `tcp chain ${port.port} ${port.protocol}`, [rule, mesh, ...ranges, "", ...names], () => {
    // A listener's own port may be none of the service's; one that has a single port can only mean that.
    const number = (service.ports.length === 1 ? service.ports[0]?.port : undefined) ?? port.port;
    const cluster = outboundCluster(service.hostname, number);
    // The name of the port is not part of what connections are counted under.
    const named = { service, port: { port: number, name: "" }, subset: "", targetPort: 0, fallback: cluster };
    return {
      clusters: [cluster],
      weights: [],
      statPrefix: statName(mesh.outboundClusterStatName, named),
      protocol: port.protocol,
      subset: "",
      rule,
      origin: undefined,
      serverNames: names,
      ranges,
    };
  });
}

/** Clients of an alias name that, in any of its forms. */
function serverNames({ hostname, aliases = [] }: Service, { dnsDomain, traits }: OutboundView): readonly string[] {
  const namesOf = (name: string) => [name, ...otherNames(name, dnsDomain, traits.listener)];
  return [hostname, ...aliases.flatMap((alias) => namesOf(alias.hostname))];
}
