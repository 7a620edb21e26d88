/** The HTTP filters of a connection manager. */
import { create, type JsonObject } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { CorsSchema } from "#gen/envoy/extensions/filters/http/cors/v3/cors_pb.ts";
import { HTTPFaultSchema } from "#gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts";
import { FilterConfigSchema as GrpcStatsSchema } from "#gen/envoy/extensions/filters/http/grpc_stats/v3/config_pb.ts";
import { GrpcWebSchema } from "#gen/envoy/extensions/filters/http/grpc_web/v3/grpc_web_pb.ts";
import { RouterSchema } from "#gen/envoy/extensions/filters/http/router/v3/router_pb.ts";
import { StatefulSessionSchema } from "#gen/envoy/extensions/filters/http/stateful_session/v3/stateful_session_pb.ts";
import {
  type HttpFilter,
  HttpFilterSchema,
} from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import {
  FilterConfig_Protocol as AlpnProtocol,
  FilterConfigSchema as AlpnSchema,
} from "#gen/istio/envoy/config/filter/http/alpn/v2alpha1/config_pb.ts";
import type { Protocol } from "#model/service/service.ts";
import { type JwtInput, jwtFilter } from "../authentication/jwt-filter.ts";
import {
  type AuthorizationInput,
  customHttpFilters,
  httpAuthorization,
  unreadableHttpFilters,
} from "../authorization/filters.ts";
import type { HttpTraits } from "../traits/traits.ts";
import { pack } from "../wire/encode.ts";
import { typedStruct } from "../wire/typed-struct.ts";
import type { ListenerClass } from "./listener-class.ts";
import { SESSION_FILTER } from "./session.ts";
import { exchangedLabels } from "./tcp-proxy.ts";

/** What decides which filters a request passes. */
export interface HttpFilterInput {
  readonly class: ListenerClass;
  /** Protocol as declared by the service or gateway. */
  readonly protocol: Protocol;
  readonly traits: HttpTraits;
  /** Clients use it as a proxy, and name hosts in the URL. */
  readonly takesAbsoluteUrls?: boolean;
  /** Policies about those who call; a sidecar has none for its own workload's calls. */
  readonly authorization?: AuthorizationInput;
  /** Tokens of end users that are checked. */
  readonly authentication?: JwtInput;
}

type HttpFilterBuilder = (input: HttpFilterInput) => HttpFilter | readonly HttpFilter[] | undefined;

/** Order is behaviour: the peer is known before anything is decided about it; the router ends the chain. */
const HTTP_FILTERS: readonly HttpFilterBuilder[] = [
  peerMetadata,
  ({ authorization }) => authorization && unreadableHttpFilters(authorization),
  ({ authorization }) => authorization && customHttpFilters(authorization),
  ({ authentication, class: at }) => authentication && jwtFilter(authentication, at === "gateway"),
  ({ authorization }) => authorization && httpAuthorization(authorization),
  grpcWeb,
  grpcStats,
  alpn,
  fault,
  cors,
  session,
  router,
];

/** The filters of one connection manager, in order. */
export function httpFilters(input: HttpFilterInput): HttpFilter[] {
  const { lacks } = input.traits;
  return HTTP_FILTERS.flatMap((build) => build(input) ?? []).filter(({ name }) => !lacks.includes(name));
}

const GRPC_WEB = filterOf("envoy.filters.http.grpc_web", pack(GrpcWebSchema, {}));
const GRPC_STATS = filterOf(
  "envoy.filters.http.grpc_stats",
  pack(GrpcStatsSchema, {
    emitFilterState: true,
    perMethodStatSpecifier: { case: "statsForAllMethods", value: { value: false } },
  }),
);
const FAULT = filterOf("envoy.filters.http.fault", pack(HTTPFaultSchema, {}));
const CORS = filterOf("envoy.filters.http.cors", pack(CorsSchema, {}));
/** Does nothing by itself: routes and hosts tell which sessions there are. */
const SESSION = filterOf(SESSION_FILTER, pack(StatefulSessionSchema, {}));
const ROUTER = filterOf("envoy.filters.http.router", pack(RouterSchema, {}));
const ROUTER_WITHOUT_ENVOY_HEADERS = filterOf(
  "envoy.filters.http.router",
  pack(RouterSchema, { suppressEnvoyHeaders: true }),
);

/** The names let the server tell HTTP of the mesh from other TLS; the plain ones are for servers outside. */
const ALPN = filterOf(
  "istio.alpn",
  pack(AlpnSchema, {
    alpnOverride: [
      { upstreamProtocol: AlpnProtocol.HTTP10, alpnOverride: ["istio-http/1.0", "istio", "http/1.0"] },
      { upstreamProtocol: AlpnProtocol.HTTP11, alpnOverride: ["istio-http/1.1", "istio", "http/1.1"] },
      { upstreamProtocol: AlpnProtocol.HTTP2, alpnOverride: ["istio-h2", "istio", "h2"] },
    ],
  }),
);

const DISCOVERY = [{ istio_headers: {} }, { workload_discovery: {} }];
const PROPAGATION = [{ istio_headers: {} }];
const PEER_INBOUND: JsonObject = { downstream_discovery: DISCOVERY, downstream_propagation: PROPAGATION };
const PEER_OUTBOUND: JsonObject = { upstream_discovery: DISCOVERY, upstream_propagation: PROPAGATION };
const PEER_OUTBOUND_IN_MESH: JsonObject = {
  upstream_discovery: DISCOVERY,
  upstream_propagation: [{ istio_headers: { skip_external_clusters: true } }],
};

function peerMetadata(input: HttpFilterInput): HttpFilter | undefined {
  const { traits } = input;
  if (!traits.metadataExchange) return undefined;
  return peerMetadataFilter({ ...peerSettings(input), ...exchangedLabels(traits) });
}

function peerSettings({ class: listenerClass, traits, takesAbsoluteUrls }: HttpFilterInput): JsonObject {
  if (listenerClass === "inbound") return PEER_INBOUND;
  const isInMesh = traits.headers.metadataExchangeHeaders?.mode === "IN_MESH" && takesAbsoluteUrls !== true;
  return isInMesh ? PEER_OUTBOUND_IN_MESH : PEER_OUTBOUND;
}

function grpcWeb({ protocol }: HttpFilterInput): HttpFilter | undefined {
  return protocol === "GRPC-Web" ? GRPC_WEB : undefined;
}

function grpcStats(): HttpFilter {
  return GRPC_STATS;
}

function alpn({ class: listenerClass, traits }: HttpFilterInput): HttpFilter | undefined {
  return traits.alpnFilter && listenerClass !== "inbound" ? ALPN : undefined;
}

function fault(): HttpFilter {
  return FAULT;
}

function cors(): HttpFilter {
  return CORS;
}

function session({ class: listenerClass, traits }: HttpFilterInput): HttpFilter | undefined {
  return traits.sessionFilter && listenerClass !== "inbound" ? SESSION : undefined;
}

function router({ traits }: HttpFilterInput): HttpFilter {
  return traits.headers.envoyDebugHeaders?.disabled === true ? ROUTER_WITHOUT_ENVOY_HEADERS : ROUTER;
}

function filterOf(name: string, typedConfig: Any): HttpFilter {
  return create(HttpFilterSchema, { name, configType: { case: "typedConfig", value: typedConfig } });
}

function peerMetadataFilter(config: JsonObject): HttpFilter {
  return filterOf("istio.metadata_exchange", typedStruct("io.istio.http.peer_metadata.Config", config));
}
