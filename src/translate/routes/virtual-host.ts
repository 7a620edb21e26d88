/** Virtual hosts and route configurations. */

import type { ConsistentHash } from "#config/kinds/destination-rule/schema.ts";
import { httpDestinations } from "#config/kinds/virtual-service/destinations.ts";
import type { HttpMatch, HttpRetry, HttpRoute, VirtualService } from "#config/kinds/virtual-service/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import {
  type VirtualHostSchema as HostSchema,
  VirtualHost_TlsRequirementType as TlsRequirement,
  VirtualHostSchema,
} from "#gen/envoy/config/route/v3/route_components_pb.ts";
import { RouteConfigurationSchema } from "#gen/envoy/config/route/v3/route_pb.ts";
import type { Session } from "#model/service/service.ts";
import { sessionSettings } from "../filters/session.ts";
import { ALLOW_ANY, BLACK_HOLE_CLUSTER, BLOCK_ALL, outboundCluster, traceOperation } from "../names/names.ts";
import type { VersionedField } from "../traits/capabilities.ts";
import { bytesOf, duration, type Init } from "../wire/encode.ts";
import { hashPolicy } from "./hash-policy.ts";
import { retryPolicy } from "./retry.ts";
import { routeOf } from "./route.ts";

/** A route configuration without its virtual hosts, which are parts of it. */
export function routeConfiguration({ name }: { readonly name: string }): Uint8Array {
  return bytesOf(RouteConfigurationSchema, {
    name,
    // Routes may name clusters that are still to come, or never will: those requests fail, the others go on.
    validateClusters: false,
    maxDirectResponseBodySizeBytes: 1_048_576,
    ignorePortInHostMatching: true,
  });
}

/** What all virtual hosts share. */
interface VirtualHostInput {
  readonly name: string;
  readonly domains: readonly string[];
  /** Tells the server how often a request was tried. */
  readonly attemptCount: boolean;
  /** How requests of a client stay with one endpoint. */
  readonly session?: Session | undefined;
}

/** All requests to the service itself. */
export interface ServiceHostInput extends VirtualHostInput {
  readonly hostname: string;
  readonly port: number;
  readonly hash: ConsistentHash | undefined;
  readonly retries: HttpRetry | undefined;
}

/** Canonical bytes of a service's virtual host. */
export function serviceHost(input: ServiceHostInput): Uint8Array {
  const { hostname, port } = input;
  const hashed = hashPolicy(input.hash);
  const retries = retryPolicy(input.retries, false);
  return bytesOf(VirtualHostSchema, {
    ...hostFields(input),
    routes: [
      {
        name: "default",
        match: { pathSpecifier: { case: "prefix", value: "/" } },
        decorator: { operation: traceOperation(hostname, port) },
        action: {
          case: "route",
          value: {
            clusterSpecifier: { case: "cluster", value: outboundCluster(hostname, port) },
            timeout: duration(0),
            maxGrpcTimeout: duration(0),
            ...(retries && { retryPolicy: retries }),
            ...(hashed && { hashPolicy: [hashed] }),
          },
        },
      },
    ],
  });
}

/** Requests as virtual services tell. The lists go together: each route with a condition, its origin and its clusters. */
export interface RoutedHostInput extends VirtualHostInput {
  readonly routes: readonly HttpRoute[];
  readonly matches: readonly (HttpMatch | undefined)[];
  readonly virtualServices: readonly ConfigObject<VirtualService>[];
  /** Clusters of all destinations of all routes, one after the other. */
  readonly clusters: readonly string[];
  /** How they are hashed, in the same order; empty when none is. */
  readonly hashes: readonly (ConsistentHash | undefined)[];
  /** How requests of each route stay with one endpoint; empty when none do. */
  readonly sessions: readonly (Session | undefined)[];
  /** Hosts of mirrored requests get a suffix. */
  readonly shadowSuffix?: boolean;
  /** Fields that the proxy's Envoy does not have; unset when it has all. */
  readonly lackedFields?: readonly VersionedField[] | undefined;
  readonly port: number;
  readonly isTls: boolean;
  /** Sends plain requests to the same address with TLS. */
  readonly requiresTls: boolean;
  readonly retries: HttpRetry | undefined;
  readonly xForwardedHost: boolean;
  /** Tells clients that the host speaks HTTP/3 on the same port. */
  readonly offersHttp3: boolean;
}

/** Canonical bytes of a virtual host with the routes of virtual services. */
export function routedHost(input: RoutedHostInput): Uint8Array {
  const { port, isTls, retries, xForwardedHost, offersHttp3, shadowSuffix = false, lackedFields = [] } = input;
  const shared = { port, isTls, retries, xForwardedHost, offersHttp3, shadowSuffix, lackedFields };
  const routes = [];
  let at = 0;
  for (const [i, route] of input.routes.entries()) {
    const virtualService = input.virtualServices[i];
    const end = at + httpDestinations(route).length;
    const clusters = input.clusters.slice(at, end);
    const hashes = input.hashes.slice(at, end);
    at = end;
    if (virtualService === undefined) continue;
    const context = { ...shared, virtualService, clusters, hashes, session: input.sessions[i] };
    routes.push(...[routeOf(route, input.matches[i], context)].filter((made) => made !== undefined));
  }
  return bytesOf(VirtualHostSchema, {
    ...hostFields(input),
    routes,
    ...(input.requiresTls && { requireTls: TlsRequirement.ALL }),
  });
}

/** Hosts that no service has. */
export interface UnknownHostInput {
  /** Where their requests go. */
  readonly cluster: string;
  readonly attemptCount: boolean;
  readonly xForwardedHost: boolean;
}

/** Canonical bytes of the virtual host for all other hosts. */
export function unknownHost({ cluster, attemptCount, xForwardedHost }: UnknownHostInput): Uint8Array {
  const isAllowed = cluster !== BLACK_HOLE_CLUSTER;
  const name = isAllowed ? ALLOW_ANY : BLOCK_ALL;
  const match = { pathSpecifier: { case: "prefix" as const, value: "/" } };
  const onward = {
    clusterSpecifier: { case: "cluster" as const, value: cluster },
    timeout: duration(0),
    maxGrpcTimeout: duration(0),
    ...(xForwardedHost && { appendXForwardedHost: true }),
  };
  return bytesOf(VirtualHostSchema, {
    ...hostFields({ name, domains: ["*"], attemptCount }),
    routes: [
      isAllowed
        ? { name, match, action: { case: "route", value: onward } }
        : { name, match, action: { case: "directResponse", value: { status: 502 } } },
    ],
  });
}

/** A gateway's virtual host when no virtual service is bound to it: every request is answered with 404. */
export function emptyHost(input: VirtualHostInput): Uint8Array {
  return bytesOf(VirtualHostSchema, hostFields(input));
}

function hostFields({ name, domains, attemptCount, session }: VirtualHostInput): Init<typeof HostSchema> {
  return {
    name,
    domains: [...domains],
    ...(attemptCount && { includeRequestAttemptCount: true }),
    ...(session && { typedPerFilterConfig: sessionSettings(session) }),
  };
}
