/** External authorization: a service that is asked about each request that a CUSTOM policy matches. */
import { checkExtensionProvider } from "#config/mesh/check-extension-provider.ts";
import type { ExtensionProvider } from "#config/mesh/extension-provider.ts";
import { ApiVersion } from "#gen/envoy/config/core/v3/config_source_pb.ts";
import type { GrpcServiceSchema } from "#gen/envoy/config/core/v3/grpc_service_pb.ts";
import {
  type BufferSettingsSchema,
  ExtAuthzSchema as HttpExtAuthzSchema,
  type HttpServiceSchema,
} from "#gen/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb.ts";
import { ExtAuthzSchema as TcpExtAuthzSchema } from "#gen/envoy/extensions/filters/network/ext_authz/v3/ext_authz_pb.ts";
import type { MetadataMatcherSchema } from "#gen/envoy/type/matcher/v3/metadata_pb.ts";
import type { ListStringMatcherSchema } from "#gen/envoy/type/matcher/v3/string_pb.ts";
import type { StatusCode } from "#gen/envoy/type/v3/http_status_pb.ts";
import { duration, type Init, pack } from "../wire/encode.ts";
import { endsWith, exact, metadataMatcher, startsWith, textValue } from "./matchers.ts";

/** Verdicts of the rules of CUSTOM policies are kept in metadata under names that start so. */
export const VERDICT_PREFIX = "istio_ext_authz_";
/** Rules of CUSTOM policies have names that start so, by which a verdict about them is told. */
export const CUSTOM_RULE_PREFIX = "istio-ext-authz";
const DEFAULT_TIMEOUT_MS = 600_000;

/** A provider and the service that answers for it. */
export interface ProviderTarget {
  readonly provider: ExtensionProvider;
  readonly hostname: string;
  readonly cluster: string;
}

type Http = NonNullable<ExtensionProvider["envoyExtAuthzHttp"]>;
type Grpc = NonNullable<ExtensionProvider["envoyExtAuthzGrpc"]>;

/** The filter that asks, for HTTP; undefined when the provider is of no use. */
export function httpExtAuthz({ provider, hostname, cluster }: ProviderTarget): ReturnType<typeof pack> | undefined {
  const { envoyExtAuthzHttp: http, envoyExtAuthzGrpc: grpc } = provider;
  const settings = http ?? grpc;
  if (settings === undefined || !isUsable(provider)) return undefined;
  const { failOpen, statusOnError = "", includeRequestBodyInCheck, clearRouteCache } = settings;
  const checked = http && (headerList(http.includeRequestHeadersInCheck) ?? headerList(http.includeHeadersInCheck));
  return pack(HttpExtAuthzSchema, {
    ...(statusOnError !== "" && { statusOnError: { code: Number(statusOnError) as StatusCode } }),
    failureModeAllow: failOpen ?? false,
    clearRouteCache: clearRouteCache ?? false,
    transportApiVersion: ApiVersion.V3,
    services: http
      ? { case: "httpService", value: httpService(http, hostname, cluster) }
      : { case: "grpcService", value: grpcService(settings, hostname, cluster) },
    filterEnabledMetadata: matchedBy("envoy.filters.http.rbac"),
    ...(includeRequestBodyInCheck && { withRequestBody: bufferSettings(includeRequestBodyInCheck) }),
    ...(checked && { allowedHeaders: checked }),
  });
}

/** The filter that asks, for TCP. Only providers over gRPC can be asked about connections. */
export function tcpExtAuthz({ provider, hostname, cluster }: ProviderTarget): ReturnType<typeof pack> | undefined {
  const { envoyExtAuthzGrpc: grpc } = provider;
  if (grpc === undefined || !isUsable(provider)) return undefined;
  return pack(TcpExtAuthzSchema, {
    statPrefix: "tcp.",
    failureModeAllow: grpc.failOpen ?? false,
    transportApiVersion: ApiVersion.V3,
    grpcService: grpcService(grpc, hostname, cluster),
    filterEnabledMetadata: matchedBy("envoy.filters.network.rbac"),
  });
}

/** Whether a provider can be used at all; where it cannot, what its policies match is denied. */
function isUsable(provider: ExtensionProvider): boolean {
  return [...checkExtensionProvider(provider, "")].length === 0;
}

function httpService(settings: Http, hostname: string, cluster: string): Init<typeof HttpServiceSchema> {
  const { pathPrefix = "", timeout = DEFAULT_TIMEOUT_MS, includeAdditionalHeadersInCheck = {} } = settings;
  const added = Object.entries(includeAdditionalHeadersInCheck).sort(([a], [b]) => (a < b ? -1 : 1));
  const answer = {
    allowedUpstreamHeaders: headerList(settings.headersToUpstreamOnAllow),
    allowedClientHeaders: headerList(settings.headersToDownstreamOnDeny),
    allowedClientHeadersOnSuccess: headerList(settings.headersToDownstreamOnAllow),
  };
  const given = Object.fromEntries(Object.entries(answer).filter(([, list]) => list !== undefined));
  return {
    pathPrefix,
    serverUri: {
      uri: `http://${hostname}`,
      httpUpstreamType: { case: "cluster", value: cluster },
      timeout: duration(timeout),
    },
    ...(added.length > 0 && {
      authorizationRequest: { headersToAdd: added.map(([key, value]) => ({ key, value })) },
    }),
    ...(Object.keys(given).length > 0 && { authorizationResponse: given }),
  };
}

function grpcService(
  { timeout = DEFAULT_TIMEOUT_MS }: Grpc,
  hostname: string,
  cluster: string,
): Init<typeof GrpcServiceSchema> {
  return {
    targetSpecifier: { case: "envoyGrpc", value: { clusterName: cluster, authority: hostname } },
    timeout: duration(timeout),
  };
}

function bufferSettings(body: NonNullable<Http["includeRequestBodyInCheck"]>): Init<typeof BufferSettingsSchema> {
  const { maxRequestBytes = 0, allowPartialMessage = false, packAsBytes = false } = body;
  return { maxRequestBytes, allowPartialMessage, packAsBytes };
}

function headerList(headers: readonly string[] = []): Init<typeof ListStringMatcherSchema> | undefined {
  if (headers.length === 0) return undefined;
  const patterns = headers.map((header) => {
    if (header.startsWith("*")) return endsWith(header.slice(1), true);
    return header.endsWith("*") ? startsWith(header.slice(0, -1), true) : exact(header, true);
  });
  return { patterns };
}

/** Asks only about what a rule of a CUSTOM policy matched. */
function matchedBy(filter: string): Init<typeof MetadataMatcherSchema> {
  const verdict = `${VERDICT_PREFIX}shadow_effective_policy_id`;
  return metadataMatcher(filter, [verdict], textValue(startsWith(CUSTOM_RULE_PREFIX)));
}
