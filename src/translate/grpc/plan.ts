/**
 * Configuration for programs that speak xDS themselves, by gRPC (`GENERATOR: grpc` in the metadata of their node). They ask by name
 * only: a client for the listener `host:port`, then for its routes, clusters and endpoints; a server for the listener of the
 * address that it serves on.
 */
import { ClusterLoadAssignmentSchema } from "#gen/envoy/config/endpoint/v3/endpoint_pb.ts";
import { finished } from "#lib/async/steps.ts";
import { NO_ENDPOINTS } from "#model/service/endpoint.ts";
import { connectedPort, serviceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { serverIdentities } from "../clusters/plan.ts";
import { isFoundByDns, planEndpoints } from "../endpoints/plan.ts";
import { outboundCluster, parseClusterName } from "../names/names.ts";
import { authorizationInput } from "../policies/authorization-policies.ts";
import { modeOfPort } from "../policies/peer-authentication.ts";
import { kept } from "../recipes/indexes.ts";
import { type Recipe, recipe } from "../recipes/recipe.ts";
import { routeLists } from "../routes/applicable.ts";
import { type OutboundHost, outboundHosts } from "../routes/outbound-hosts.ts";
import { serviceHost } from "../routes/virtual-host.ts";
import { isOneDestination, serviceAddresses } from "../scope/addresses.ts";
import { destinationRuleFor } from "../scope/destination-rules.ts";
import { servicesInScope } from "../scope/egress.ts";
import type { EndpointsView, InboundView, OutboundView } from "../views/views.ts";
import { bytesOf } from "../wire/encode.ts";
import { grpcCluster } from "./cluster.ts";
import { clientListener, serverListener } from "./listener.ts";
import { grpcRoutedHost, grpcRoutes } from "./route.ts";

/** The views of a program, and whether callers of it are told to use mutual TLS. */
export interface GrpcView {
  readonly outbound: OutboundView;
  readonly inbound: InboundView;
  /** Label `security.istio.io/tlsMode: istio`: where both are allowed, callers come with mutual TLS. */
  readonly isMutualTls: boolean;
}

/** Names of the listeners of servers begin so; the address follows. */
const SERVER_PREFIX = "xds.istio.io/grpc/lds/inbound/";
const VIRTUAL_HOSTS = 2;

/** The listener of that name; undefined when it leads nowhere. */
export function planGrpcListener(snapshot: Snapshot, view: GrpcView, name: string): Recipe | undefined {
  if (name.startsWith(SERVER_PREFIX)) return planServer(snapshot, view, name);
  const { host, port } = hostAndPort(name);
  const { outbound } = view;
  const { byHost } = servicesInScope(snapshot, outbound);
  const service = byHost.get(host) ?? byHost.get(fullName(host, outbound));
  if (service === undefined || connectedPort(service, port) === undefined) return undefined;
  const { listener, autoAddresses } = outbound.traits;
  const [address = "0.0.0.0", ...others] = serviceAddresses(service, { ...listener, autoAddresses });
  const moreAddresses = isOneDestination(service) ? others : [];
  const routeName = outboundCluster(service.hostname, port);
  const session = snapshot.features.sessionFilter ? service.session : undefined;
  const input = { name, address, moreAddresses, port, routeName, session };
  return recipe({ name, input, build: clientListener });
}

function planServer(snapshot: Snapshot, { inbound, isMutualTls }: GrpcView, name: string): Recipe | undefined {
  const { host, port } = hostAndPort(name.slice(SERVER_PREFIX.length));
  if (!inbound.targets.some(({ targetPort }) => targetPort === port)) return undefined;
  const mode = modeOfPort(inbound.mtls, port);
  const { policies, trustDomains } = authorizationInput(snapshot, inbound.authorization);
  const strict = mode === "STRICT" || (mode === "PERMISSIVE" && isMutualTls);
  const input = { name, host, port, isMutualTls: strict, policies, trustDomains };
  return recipe({ name, input, build: serverListener });
}

/** The routes of that name, `outbound|PORT||HOST`: of all services on the port, as calls are told apart by their host. */
export function planGrpcRoutes(snapshot: Snapshot, { outbound }: GrpcView, name: string): Recipe | undefined {
  const parsed = parseClusterName(name);
  if (parsed === undefined || parsed.hostname === "" || parsed.port === 0) return undefined;
  const recipes = hostsOn(snapshot, outbound, parsed.port);
  return recipe({ name, input: { name }, build: grpcRoutes, parts: { field: VIRTUAL_HOSTS, recipes } });
}

/** Clients of a port have these in common, and endpoints come and go without them. */
function hostsOn(snapshot: Snapshot, view: OutboundView, port: number): readonly Recipe[] {
  const { mesh, features, services, virtualServices, destinationRules, sidecars } = snapshot;
  const key = `grpc hosts ${port} ${view.key}`;
  return kept(services, key, [mesh, features, virtualServices, destinationRules, sidecars], () =>
    finished(outboundHosts(snapshot, view, { port, bind: "", key })).map((host) =>
      hostRecipe(snapshot, view, { ...host, listenerPort: port }),
    ),
  );
}

function hostRecipe(
  { mesh, features: { shadowSuffix } }: Snapshot,
  view: OutboundView,
  host: OutboundHost & { listenerPort: number },
): Recipe {
  const { name, hostname, routes, hash, port, listenerPort } = host;
  const attemptCount = view.traits.http.headers.attemptCount?.disabled !== true;
  const domains = host.domains.flatMap((domain) => (domain === "*" ? domain : [domain, `${domain}:${listenerPort}`]));
  const fixed = { name, domains, port, attemptCount, retries: mesh.defaultHttpRetryPolicy };
  if (routes === undefined) return recipe({ name, input: { ...fixed, hostname, hash }, build: serviceHost });
  const xForwardedHost = view.traits.http.headers.xForwardedHost?.enabled === true;
  const others = { isTls: false, requiresTls: false, xForwardedHost, offersHttp3: false, shadowSuffix };
  return recipe({ name, input: { ...fixed, ...others, ...routeLists(routes) }, build: grpcRoutedHost });
}

/** The cluster of that name; undefined when there is no such service, port or subset. */
export function planGrpcCluster(snapshot: Snapshot, { outbound }: GrpcView, name: string): Recipe | undefined {
  const parsed = parseClusterName(name);
  if (parsed?.direction !== "outbound") return undefined;
  const service = servicesInScope(snapshot, outbound).byHost.get(parsed.hostname);
  if (service === undefined || connectedPort(service, parsed.port) === undefined) return undefined;
  const rule = destinationRuleFor(snapshot, service, outbound);
  const { port, subset } = parsed;
  if (subset !== "" && !rule?.spec.subsets?.some((each) => each.name === subset)) return undefined;
  const endpoints = snapshot.endpoints.get(serviceKey(service)) ?? NO_ENDPOINTS;
  const identities = serverIdentities(service, endpoints, snapshot.mesh);
  return recipe({ name, input: { name, port, subset, rule, identities }, build: grpcCluster });
}

/**
 * The endpoints of that cluster. Programs find endpoints by EDS alone, so where an Envoy would ask DNS they are told that
 * there are none: calls fail at once, and not after the time that a program waits for an answer.
 */
export function planGrpcEndpoints(snapshot: Snapshot, view: EndpointsView, name: string): Recipe | undefined {
  const planned = planEndpoints(snapshot, view, name, isFoundByDns);
  if (planned !== undefined) return planned;
  const parsed = parseClusterName(name);
  const service = parsed && servicesInScope(snapshot, view).byHost.get(parsed.hostname);
  if (service === undefined || !isFoundByDns(service)) return undefined;
  return recipe({ name, input: { name }, build: noEndpoints });
}

function noEndpoints({ name }: { readonly name: string }): Uint8Array {
  return bytesOf(ClusterLoadAssignmentSchema, { clusterName: name });
}

/** `greeter` and `greeter.default` are completed as a resolver in the program's namespace would. */
function fullName(host: string, { namespace, dnsDomain }: OutboundView): string {
  if (!host.includes(".")) return `${host}.${dnsDomain}`;
  for (const suffix of [namespace, `${namespace}.svc`]) {
    if (host.endsWith(`.${suffix}`) && dnsDomain.startsWith(suffix))
      return `${host.slice(0, -suffix.length)}${dnsDomain}`;
  }
  return host;
}

function hostAndPort(address: string): { readonly host: string; readonly port: number } {
  const at = address.lastIndexOf(":");
  return { host: address.slice(0, at).replace(/^\[(.*)\]$/, "$1"), port: Number(address.slice(at + 1)) };
}
