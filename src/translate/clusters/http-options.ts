/** Which HTTP a cluster speaks, and the limits of its connections. */
import type { ConnectionPool } from "#config/kinds/destination-rule/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type {
  HttpProtocolOptionsSchema as CommonOptionsSchema,
  Http1ProtocolOptionsSchema,
  UpstreamHttpProtocolOptionsSchema,
} from "#gen/envoy/config/core/v3/protocol_pb.ts";
import { HttpProtocolOptionsSchema } from "#gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.ts";
import { isHttp, isHttp2, type Protocol } from "#model/service/service.ts";
import { PRESERVE_CASE } from "../filters/preserve-case.ts";
import type { ClusterTraits } from "../traits/traits.ts";
import { duration, type Init, pack } from "../wire/encode.ts";

/** Name under which clusters hold their HTTP options. */
const OPTIONS_NAME = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/** `downstream`: whatever the client spoke. */
export type UpstreamProtocol = "http1" | "http2" | "downstream";

/** What decides the protocol of a cluster. */
export interface ProtocolInput {
  readonly protocol: Protocol;
  readonly pool: ConnectionPool | undefined;
  /** Only outbound clusters are upgraded to HTTP/2 by configuration. */
  readonly direction: "outbound" | "inbound";
  readonly traits: ClusterTraits;
  readonly mesh: MeshConfig;
}

/** The protocol a cluster is told to speak; undefined leaves it to Envoy, which speaks HTTP/1. */
export function upstreamProtocol(input: ProtocolInput): UpstreamProtocol | undefined {
  if (input.pool?.http?.useClientProtocol === true) return "downstream";
  const { protocol, traits } = input;
  if (isHttp2(protocol)) return "http2";
  if (protocol === "Unsupported" && traits.role === "sidecar") return "downstream";
  if (preservesCase(protocol, traits)) return "http1";
  return input.direction === "outbound" && isUpgraded(input) ? "http2" : undefined;
}

/** Whether headers of HTTP/1 keep their case: where it is, or may be, HTTP that is declared. */
export function preservesCase(protocol: Protocol, { preserveHeaderCase }: ClusterTraits): boolean {
  return preserveHeaderCase && (isHttp(protocol) || protocol === "Unsupported");
}

function isUpgraded({ protocol, pool, mesh }: ProtocolInput): boolean {
  switch (pool?.http?.h2UpgradePolicy) {
    case "UPGRADE":
      return true;
    case "DO_NOT_UPGRADE":
      return false;
    default:
      return isHttp(protocol) && mesh.h2UpgradePolicy === "UPGRADE";
  }
}

/** Everything that ends up in the HTTP options of a cluster. */
export interface HttpOptionsInput {
  readonly protocol: UpstreamProtocol | undefined;
  readonly pool: ConnectionPool | undefined;
  readonly preserveHeaderCase: boolean;
  readonly upstream: Init<typeof UpstreamHttpProtocolOptionsSchema> | undefined;
}

/** The options of a cluster, if any are needed. */
export function httpOptions(input: HttpOptionsInput) {
  const common = commonOptions(input.pool);
  if (input.protocol === undefined && common === undefined && input.upstream === undefined) return {};
  const options: Init<typeof HttpProtocolOptionsSchema> = {
    ...(common && { commonHttpProtocolOptions: common }),
    ...(input.upstream && { upstreamHttpProtocolOptions: input.upstream }),
    upstreamProtocolOptions: protocolOptions(input),
  };
  return { typedExtensionProtocolOptions: { [OPTIONS_NAME]: pack(HttpProtocolOptionsSchema, options) } };
}

function protocolOptions({
  protocol,
  pool,
  preserveHeaderCase,
}: HttpOptionsInput): Init<typeof HttpProtocolOptionsSchema>["upstreamProtocolOptions"] & {} {
  const http1: Init<typeof Http1ProtocolOptionsSchema> = preserveHeaderCase ? { headerKeyFormat: PRESERVE_CASE } : {};
  const streams = pool?.http?.maxConcurrentStreams ?? 0;
  switch (protocol) {
    case "downstream":
      return {
        case: "useDownstreamProtocolConfig",
        value: { httpProtocolOptions: http1, http2ProtocolOptions: {} },
      };
    case "http2": {
      const http2 = streams > 0 ? { maxConcurrentStreams: streams } : {};
      return {
        case: "explicitHttpConfig",
        value: { protocolConfig: { case: "http2ProtocolOptions", value: http2 } },
      };
    }
    case "http1":
    case undefined: {
      const options = protocol === "http1" ? http1 : {};
      return {
        case: "explicitHttpConfig",
        value: { protocolConfig: { case: "httpProtocolOptions", value: options } },
      };
    }
  }
}

/** Limits of the life of a connection; those for HTTP come before those for TCP. */
function commonOptions(pool: ConnectionPool | undefined): Init<typeof CommonOptionsSchema> | undefined {
  const idleTimeout = pool?.http?.idleTimeout ?? pool?.tcp?.idleTimeout;
  const maxRequests = pool?.http?.maxRequestsPerConnection ?? 0;
  const maxDuration = pool?.tcp?.maxConnectionDuration;
  const streams = pool?.http?.maxConcurrentStreams ?? 0;
  if (idleTimeout === undefined && maxDuration === undefined && maxRequests <= 0 && streams <= 0) return undefined;
  return {
    ...(idleTimeout !== undefined && { idleTimeout: duration(idleTimeout) }),
    ...(maxRequests > 0 && { maxRequestsPerConnection: maxRequests }),
    ...(maxDuration !== undefined && { maxConnectionDuration: duration(maxDuration) }),
  };
}

/** Options of clusters that pass on what they get: the client's protocol, and idle connections for five minutes. */
export function passthroughHttpOptions(preserveHeaderCase: boolean) {
  return httpOptions({
    protocol: "downstream",
    pool: { http: { idleTimeout: 300_000 } },
    preserveHeaderCase,
    upstream: undefined,
  });
}
