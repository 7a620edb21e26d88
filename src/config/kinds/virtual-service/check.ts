import { isIP } from "node:net";
import { checkExportTo } from "../../checks/export-to.ts";
import { wrongHost } from "../../checks/names.ts";
import { checkSubnet } from "../../checks/network.ts";
import type { ConfigObject } from "../../schema/config-object.ts";
import { error, type Problem, warning } from "../../schema/problem.ts";
import { hostCover, isWildcard } from "../../terms/host.ts";
import { checkRouteExpansion } from "../check-expansion.ts";
import { checkRouteDestinations } from "./check-destinations.ts";
import { checkGatewayNames } from "./check-gateway-names.ts";
import { isJwtClaim } from "./check-headers.ts";
import { checkWhereFrom } from "./check-http-match.ts";
import { checkHttpRoute } from "./check-http-route.ts";
import { checkReachable } from "./check-reachable.ts";
import { MESH_GATEWAY } from "./gateway-name.ts";
import type { L4Match, TcpRoute, TlsMatch, TlsRoute, VirtualService } from "./schema.ts";

/** SNI between gateways of two networks: `outbound_.80_._.host`. */
const GENERATED_SNI = /^outbound_[^_\d]*\d[^_]*_[^_]*_[^_a-zA-Z]*[a-zA-Z]/;

/** Checks a VirtualService. One without hosts is a delegate, which others refer to. */
export function* checkVirtualService({ spec, metadata }: ConfigObject<VirtualService>): Iterable<Problem> {
  const { hosts = [], gateways = [], http = [], tls = [], tcp = [] } = spec;
  const isDelegate = hosts.length === 0;
  if (isDelegate) yield* checkDelegate(spec);
  yield* checkGatewayNames(gateways, "spec.gateways");
  yield* checkHosts(spec);
  if (!isForGateways(spec)) yield* checkNoClaims(spec);
  if (http.length + tls.length + tcp.length === 0) yield error("spec", "needs http, tls or tcp routes");
  for (const [i, route] of http.entries()) yield* checkHttpRoute(route, `spec.http[${i}]`, isDelegate);
  const owner = sniOwner(spec);
  for (const [i, route] of tls.entries()) yield* checkTlsRoute(route, `spec.tls[${i}]`, owner);
  for (const [i, route] of tcp.entries()) yield* checkTcpRoute(route, `spec.tcp[${i}]`);
  yield* checkExportTo({ exportTo: spec.exportTo, namespace: metadata.namespace });
  yield* checkRouteExpansion(spec);
  yield* checkReachable(spec);
}

function* checkDelegate({ gateways = [], tls = [], tcp = [] }: VirtualService): Iterable<Problem> {
  for (const [name, list] of Object.entries({ gateways, tls, tcp })) {
    if (list.length > 0) yield error(`spec.${name}`, "cannot be set without hosts: this is a delegate");
  }
}

function isForGateways({ gateways = [] }: VirtualService): boolean {
  return gateways.length > 0 && !gateways.includes(MESH_GATEWAY);
}

function* checkHosts(spec: VirtualService): Iterable<Problem> {
  const { hosts = [], tls = [] } = spec;
  const forGateways = isForGateways(spec);
  const forSni = forGateways && tls.some(({ match = [] }) => match.some(({ sniHosts = [] }) => sniHosts.length > 0));
  let wrong = 0;
  for (const [i, host] of hosts.entries()) {
    const message = isIP(host) === 0 ? wrongVirtualHost(host, forSni) : undefined;
    const everything =
      host === "*" && !forGateways ? `must not be "*" for sidecars: name gateways, or a host` : undefined;
    const problem = message ?? everything;
    if (problem === undefined) continue;
    wrong++;
    yield error(`spec.hosts[${i}]`, problem);
  }
  if (wrong === 0) yield* checkDistinct(hosts);
}

/** Wider names are found by their text: comparing each of thousands with each would stop everything else. */
function* checkDistinct(hosts: readonly string[]): Iterable<Problem> {
  const first = new Map(hosts.map((host, i) => [host, i] as const).reverse());
  const suffixLengths = new Set(hosts.filter(isWildcard).map((host) => host.length - 1));
  const overlaps = new Map<number, number>();
  const note = (one: number, other: number) => {
    const [before, after] = [Math.min(one, other), Math.max(one, other)];
    if (before < (overlaps.get(after) ?? after)) overlaps.set(after, before);
  };
  for (const [i, host] of hosts.entries()) {
    note(first.get(host) ?? i, i);
    const name = isWildcard(host) ? host.slice(1) : host;
    for (const length of suffixLengths) {
      if (length <= name.length) note(first.get(`*${name.slice(name.length - length)}`) ?? i, i);
    }
  }
  for (const [i, before] of [...overlaps].sort(([a], [b]) => a - b)) {
    yield error(`spec.hosts[${i}]`, `"${hosts[i]}" overlaps with "${hosts[before]}"`);
  }
}

function wrongVirtualHost(host: string, generatedAllowed: boolean): string | undefined {
  return generatedAllowed && GENERATED_SNI.test(host) ? undefined : wrongHost(host);
}

/** Claims of a token are known only where a gateway has checked it. */
function* checkNoClaims({ http = [] }: VirtualService): Iterable<Problem> {
  for (const [i, route] of http.entries()) {
    for (const [j, match] of (route.match ?? []).entries()) {
      for (const name of [...Object.keys(match.headers ?? {}), ...Object.keys(match.withoutHeaders ?? {})]) {
        if (isJwtClaim(name)) yield error(`spec.http[${i}].match[${j}]`, `can match "${name}" on gateways only`);
      }
    }
  }
}

/** What names of servers are compared with. */
interface SniOwner {
  readonly isForGateways: boolean;
  /** Its hosts for people, who need not see thousands. */
  readonly shownHosts: string;
  readonly covers: (host: string) => boolean;
}

const MOST_SHOWN_HOSTS = 10;

function sniOwner(spec: VirtualService): SniOwner {
  const { hosts = [] } = spec;
  const shown = hosts.slice(0, MOST_SHOWN_HOSTS).join(", ");
  return {
    isForGateways: isForGateways(spec),
    shownHosts: hosts.length > MOST_SHOWN_HOSTS ? `${shown}, ...` : shown,
    covers: hostCover(hosts),
  };
}

function* checkTlsRoute(route: TlsRoute, at: string, owner: SniOwner): Iterable<Problem> {
  const { match = [], route: destinations = [] } = route;
  if (match.length === 0) yield error(`${at}.match`, "is required");
  for (const [i, condition] of match.entries()) yield* checkTlsMatch(condition, `${at}.match[${i}]`, owner);
  if (destinations.length === 0) yield error(`${at}.route`, "is required");
  yield* checkRouteDestinations(destinations, `${at}.route`);
}

function* checkTlsMatch(match: TlsMatch, at: string, owner: SniOwner): Iterable<Problem> {
  const { sniHosts = [] } = match;
  if (sniHosts.length === 0) yield error(`${at}.sniHosts`, "needs at least one host");
  for (const [i, host] of sniHosts.entries()) yield* checkSniHost(host, `${at}.sniHosts[${i}]`, owner);
  yield* checkL4Match(match, at);
}

function* checkSniHost(host: string, at: string, owner: SniOwner): Iterable<Problem> {
  const wrong = wrongVirtualHost(host, owner.isForGateways);
  if (wrong !== undefined && isIP(host) !== 0) {
    yield warning(at, `is an address, which most clients do not send as SNI: "${host}"`);
  } else if (wrong !== undefined) yield error(at, wrong);
  else if (!owner.covers(host)) {
    yield error(at, `must be covered by a host of the virtual service (${owner.shownHosts}), "${host}" is not`);
  }
}

function* checkTcpRoute(route: TcpRoute, at: string): Iterable<Problem> {
  const { match = [], route: destinations = [] } = route;
  for (const [i, condition] of match.entries()) yield* checkL4Match(condition, `${at}.match[${i}]`);
  if (destinations.length === 0) yield error(`${at}.route`, "is required");
  yield* checkRouteDestinations(destinations, `${at}.route`);
}

function* checkL4Match(match: L4Match | TlsMatch, at: string): Iterable<Problem> {
  for (const [i, subnet] of (match.destinationSubnets ?? []).entries()) {
    yield* checkSubnet(subnet, `${at}.destinationSubnets[${i}]`);
  }
  yield* checkWhereFrom({ ...match, sourceNamespace: undefined }, at);
}
