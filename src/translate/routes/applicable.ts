/** Which routes of a virtual service apply to a proxy on a port, and where they lead. */

import type { ConsistentHash } from "#config/kinds/destination-rule/schema.ts";
import { httpDestinations } from "#config/kinds/virtual-service/destinations.ts";
import { completeGateway } from "#config/kinds/virtual-service/gateway-name.ts";
import type { Destination, HttpMatch, HttpRoute, VirtualService } from "#config/kinds/virtual-service/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { completeHost } from "#config/terms/host.ts";
import type { Service, Session } from "#model/service/service.ts";
import { outboundCluster } from "../names/names.ts";
import { destinationRuleFor, type RuleSnapshot } from "../scope/destination-rules.ts";
import { type BoundVirtualService, sourceConditionId } from "../scope/virtual-services.ts";
import type { GatewayView, OutboundView } from "../views/views.ts";
import { canBeMet, takesEveryRequest } from "./match.ts";
import type { RoutedHostInput } from "./virtual-host.ts";

/** Where a request arrives. */
export interface Arrival {
  readonly view: OutboundView | GatewayView;
  /** `mesh`, or the Gateway by `namespace/name`. */
  readonly gateway: string;
  readonly port: number;
  /** The service that a destination names. */
  readonly serviceOf: (hostname: string, virtualService: BoundVirtualService) => Service | undefined;
  /** A destination without a port means the service's only one, where it has one; else the port that was called. */
  readonly prefersOnlyPort: boolean;
}

/** A route under one condition, and where it leads. */
export interface ApplicableRoute {
  readonly route: HttpRoute;
  readonly match: HttpMatch | undefined;
  readonly origin: ConfigObject<VirtualService>;
  /** Of its destinations, in the order of `httpDestinations`. */
  readonly clusters: readonly string[];
  readonly hashes: readonly (ConsistentHash | undefined)[];
  /** How its requests stay with one endpoint. */
  readonly session: Session | undefined;
}

/** Routes and conditions in order, up to the first that takes every request. */
export function applicableRoutes(
  snapshot: RuleSnapshot,
  virtualService: BoundVirtualService,
  arrival: Arrival,
): readonly ApplicableRoute[] {
  const found: ApplicableRoute[] = [];
  for (const [route, match] of conditions(virtualService, arrival)) {
    const targets = httpDestinations(route).map((one) => targetOf(snapshot, one, { virtualService, arrival }));
    found.push({
      route,
      match,
      origin: virtualService.object,
      clusters: targets.map(({ cluster }) => cluster),
      hashes: targets.map(({ hash }) => hash),
      session: snapshot.features.sessionFilter ? sessionOf(targets.slice(0, route.route?.length ?? 0)) : undefined,
    });
    if (takesEveryRequest(match)) break;
  }
  return found;
}

/** The routes as a virtual host takes them: flat lists, so that inputs can be compared. */
export function routeLists(
  all: readonly ApplicableRoute[],
): Pick<RoutedHostInput, "routes" | "matches" | "virtualServices" | "clusters" | "hashes" | "sessions"> {
  const hashes = all.flatMap((one) => one.hashes);
  return {
    routes: all.map(({ route }) => route),
    matches: all.map(({ match }) => match),
    virtualServices: all.map(({ origin }) => origin),
    clusters: all.flatMap((one) => one.clusters),
    hashes: hashes.some((hash) => hash !== undefined) ? hashes : [],
    sessions: all.some(({ session }) => session !== undefined) ? all.map(({ session }) => session) : [],
  };
}

/** Of several destinations the last decides, unless two of them have sessions: then the first of these. */
function sessionOf(targets: readonly Target[]): Session | undefined {
  let found: Session | undefined;
  for (const { session } of targets) {
    if (session !== undefined && found !== undefined) break;
    found = session;
  }
  return found;
}

function* conditions(
  virtualService: BoundVirtualService,
  arrival: Arrival,
): Generator<readonly [HttpRoute, HttpMatch | undefined]> {
  for (const route of virtualService.object.spec.http ?? []) {
    if (route.delegate !== undefined) continue; // its delegate is missing
    const match = route.match ?? [];
    if (match.length === 0) yield [route, undefined];
    for (const condition of match) if (canHold(condition, virtualService, arrival)) yield [route, condition];
  }
}

/** Whether the parts of a condition hold that are known before any request comes. */
function canHold(match: HttpMatch, { object }: BoundVirtualService, { view, gateway, port }: Arrival): boolean {
  if (!canBeMet(match) || (match.port && match.port !== port)) return false;
  const gateways = match.gateways ?? [];
  if (gateways.length > 0) {
    return gateways.some((name) => completeGateway(name, object.metadata.namespace) === gateway);
  }
  const labels = match.sourceLabels ?? {};
  const fits = Object.keys(labels).length === 0 || view.sourceConditions.includes(sourceConditionId(labels));
  return fits && (!match.sourceNamespace || match.sourceNamespace === view.namespace);
}

interface Target {
  readonly cluster: string;
  readonly hash: ConsistentHash | undefined;
  readonly session: Session | undefined;
}

function targetOf(
  snapshot: RuleSnapshot,
  destination: Destination,
  { virtualService, arrival }: { readonly virtualService: BoundVirtualService; readonly arrival: Arrival },
): Target {
  const { object, domain } = virtualService;
  const hostname = completeHost(destination.host, object.metadata.namespace, domain);
  const service = arrival.serviceOf(hostname, virtualService);
  const onlyPort = arrival.prefersOnlyPort && service?.ports.length === 1 ? service.ports[0]?.port : undefined;
  const port = destination.port?.number ?? onlyPort ?? arrival.port;
  const rule = service && destinationRuleFor(snapshot, service, arrival.view)?.spec;
  const policies = [rule?.subsets?.find(({ name }) => name === destination.subset)?.trafficPolicy, rule?.trafficPolicy];
  const hashes = policies.flatMap((policy) => [
    policy?.portLevelSettings?.find((settings) => settings.port?.number === destination.port?.number)?.loadBalancer,
    policy?.loadBalancer,
  ]);
  return {
    cluster: outboundCluster(service?.aliasOf ?? hostname, port, destination.subset),
    hash: hashes.map((balancer) => balancer?.consistentHash).find((hash) => hash !== undefined),
    // A sidecar knows only the services of the port that is called.
    session: arrival.prefersOnlyPort || hasPort(service, arrival.port) ? service?.session : undefined,
  };
}

function hasPort(service: Service | undefined, number: number): boolean {
  return service?.ports.some(({ port }) => port === number) === true;
}
