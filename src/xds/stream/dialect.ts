/** The streams that are served: aggregated, or of one type alone; delta, or state of the world. */
import { STATUS } from "#lib/grpc/status.ts";
import { withoutFirst } from "#lib/wire/read.ts";
import { type DeltaRequest, parseDeltaRequest } from "#protocol/messages/delta-request.ts";
import { RequestLimitError } from "#protocol/messages/request-limits.ts";
import {
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  EXTENSION_TYPE,
  LISTENER_TYPE,
  ROUTE_TYPE,
  SECRET_TYPE,
} from "#protocol/messages/type-urls.ts";
import type { Resource } from "#protocol/resource.ts";
import type { Session, StreamKind } from "#protocol/session.ts";
import { parseStateRequest } from "#protocol/state-request.ts";
import { Refusal } from "./refusal.ts";

/** What is spoken on a stream. */
export interface Dialect {
  /** Name of the gRPC method, without its service. */
  readonly method: string;
  readonly path: string;
  readonly kind: StreamKind;
  /** The only type that is served; undefined for all. */
  readonly typeUrl: string | undefined;
}

const SERVICES: readonly { readonly service: string; readonly resources: string; readonly typeUrl?: string }[] = [
  { service: "discovery.v3.AggregatedDiscoveryService", resources: "AggregatedResources" },
  { service: "cluster.v3.ClusterDiscoveryService", resources: "Clusters", typeUrl: CLUSTER_TYPE },
  { service: "endpoint.v3.EndpointDiscoveryService", resources: "Endpoints", typeUrl: ENDPOINT_TYPE },
  { service: "listener.v3.ListenerDiscoveryService", resources: "Listeners", typeUrl: LISTENER_TYPE },
  { service: "route.v3.RouteDiscoveryService", resources: "Routes", typeUrl: ROUTE_TYPE },
  { service: "secret.v3.SecretDiscoveryService", resources: "Secrets", typeUrl: SECRET_TYPE },
  { service: "extension.v3.ExtensionConfigDiscoveryService", resources: "ExtensionConfigs", typeUrl: EXTENSION_TYPE },
];

/** All that are served, on every port of xDS. */
export const DIALECTS: readonly Dialect[] = SERVICES.flatMap(({ service, resources, typeUrl }) =>
  (["delta", "state"] as const).map((kind) => {
    const method = `${kind === "delta" ? "Delta" : "Stream"}${resources}`;
    return { method, path: `/envoy.service.${service}/${method}`, kind, typeUrl };
  }),
);

/** The encoded node of a request, if it has one, its type, and the nonce of the response that it answers. */
export function envelopeIn(
  { kind }: Dialect,
  bytes: Uint8Array,
): { node: Uint8Array | undefined; typeUrl: string; nonce: string } {
  return reading(kind, () => (kind === "delta" ? parseDeltaRequest(bytes) : parseStateRequest(bytes)));
}

/** What a request asks, beside what the session knows. Refused when it is none, or about another type. */
export function requestIn<R extends Resource>(dialect: Dialect, bytes: Uint8Array, session: Session<R>): DeltaRequest {
  if (dialect.kind === "delta") {
    const request = deltaRequest(bytes);
    const typeUrl = typeOf(dialect, request);
    return typeUrl === request.typeUrl ? request : { ...request, typeUrl };
  }
  const request = stateRequest(bytes);
  const typeUrl = typeOf(dialect, request);
  const told = typeUrl === request.typeUrl ? request : { ...request, typeUrl };
  return session.steps.meaning(told, session.types.get(typeUrl));
}

const deltaRequest = readOnce("delta", { node: 1, read: parseDeltaRequest });
const stateRequest = readOnce("state", { node: 2, read: parseStateRequest });

/** A proxy asks for clusters, endpoints, listeners and routes in turn. */
const REMEMBERED = 4;

/**
 * Proxies of one view ask in the same words, for thousands of names, and answer in the same words what they were all told:
 * these are read once. Some repeat their node each time, before the rest; who asks is known, so it does not count.
 */
function readOnce<Request>(kind: StreamKind, { node, read }: Words<Request>): (bytes: Uint8Array) => Request {
  let recent: readonly { readonly words: Uint8Array; readonly request: Request }[] = [];
  return (bytes) =>
    reading(kind, () => {
      const words = withoutFirst(bytes, node);
      const known = recent.find((one) => one.words.length === words.length && Buffer.compare(one.words, words) === 0);
      if (known !== undefined) return known.request;
      const request = read(words);
      recent = [{ words, request }, ...recent.slice(0, REMEMBERED - 1)];
      return request;
    });
}

interface Words<Request> {
  /** Number of the field that has the node. */
  readonly node: number;
  readonly read: (bytes: Uint8Array) => Request;
}

/** On a stream of one type requests need not repeat it. */
function typeOf({ typeUrl: only, method }: Dialect, { typeUrl }: { readonly typeUrl: string }): string {
  const asked = typeUrl || only;
  if (asked === undefined) throw new Refusal(STATUS.INVALID_ARGUMENT, "Cannot answer a request without type_url");
  if (only === undefined || asked === only) return asked;
  throw new Refusal(STATUS.INVALID_ARGUMENT, `Cannot answer a request for ${asked}: ${method} is about ${only}`);
}

function reading<T>(kind: StreamKind, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof RequestLimitError) {
      throw new Refusal(STATUS.RESOURCE_EXHAUSTED, `Cannot take the request: ${cause.message}`, { cause });
    }
    const wanted = kind === "delta" ? "DeltaDiscoveryRequest" : "DiscoveryRequest";
    throw new Refusal(STATUS.INVALID_ARGUMENT, `Cannot read the request: it is no ${wanted}`, { cause });
  }
}
