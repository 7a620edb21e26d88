/** The network filter that speaks HTTP. */
import { create } from "@bufbuild/protobuf";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import { ApiVersion } from "#gen/envoy/config/core/v3/config_source_pb.ts";
import type { Http1ProtocolOptionsSchema } from "#gen/envoy/config/core/v3/protocol_pb.ts";
import { type Filter, FilterSchema } from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import type { RouteConfigurationSchema } from "#gen/envoy/config/route/v3/route_pb.ts";
import {
  HttpConnectionManager_CodecType as CodecType,
  HttpConnectionManager_PathWithEscapedSlashesAction as EscapedSlashes,
  HttpConnectionManager_ForwardClientCertDetails as ForwardClientCert,
  type HttpConnectionManager_SetCurrentClientCertDetailsSchema,
  HttpConnectionManagerSchema,
  HttpConnectionManager_ServerHeaderTransformation as ServerHeader,
} from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import { UuidRequestIdConfigSchema } from "#gen/envoy/extensions/request_id/uuid/v3/uuid_pb.ts";
import { isHttp2, type Protocol } from "#model/service/service.ts";
import type { JwtInput } from "../authentication/jwt-filter.ts";
import type { AuthorizationInput } from "../authorization/filters.ts";
import type { HttpTraits } from "../traits/traits.ts";
import { sortedRanges } from "../wire/cidr.ts";
import { duration, type Init, pack } from "../wire/encode.ts";
import { isHeaderText } from "../wire/header-text.ts";
import { accessLogs } from "./access-log.ts";
import { httpFilters } from "./http-filters.ts";
import type { ListenerClass } from "./listener-class.ts";
import { PRESERVE_CASE } from "./preserve-case.ts";
import { tracing } from "./tracing.ts";

type Manager = Init<typeof HttpConnectionManagerSchema>;
type CertDetails = Init<typeof HttpConnectionManager_SetCurrentClientCertDetailsSchema>;

/** What one connection manager depends on. */
export interface HttpConnectionManagerInput {
  readonly class: ListenerClass;
  readonly statPrefix: string;
  /** Routes by name, fetched on their own, or given here. */
  readonly routes: string | Init<typeof RouteConfigurationSchema>;
  readonly protocol: Protocol;
  /** Clients use it as a proxy, and name hosts in the URL. */
  readonly takesAbsoluteUrls?: boolean;
  /** Speaks HTTP/3. */
  readonly isQuic?: boolean;
  readonly traits: HttpTraits;
  readonly mesh: MeshConfig;
  readonly authorization?: AuthorizationInput;
  readonly authentication?: JwtInput;
}

/** A network filter with an HTTP connection manager. */
export function httpConnectionManager(input: HttpConnectionManagerInput): Filter {
  const manager: Manager = {
    statPrefix: input.statPrefix,
    routeSpecifier: routeSpecifier(input.routes),
    httpFilters: httpFilters(input),
    accessLog: accessLogs(input.mesh, "http"),
    useRemoteAddress: usesRemoteAddress(input),
    ...internalAddresses(input),
    proxy100Continue: input.traits.without100Continue !== true,
    upgradeConfigs: [{ upgradeType: "websocket" }],
    streamIdleTimeout: duration(0),
    ...pathNormalization(input.mesh),
    requestIdExtension: { typedConfig: REQUEST_ID },
    ...optional("tracing", tracing(input.mesh, input.traits)),
    ...headerOptions(input),
    ...protocolOptions(input),
  };
  return create(FilterSchema, {
    name: "envoy.filters.network.http_connection_manager",
    configType: { case: "typedConfig", value: pack(HttpConnectionManagerSchema, manager) },
  });
}

function usesRemoteAddress({ class: listenerClass, traits, takesAbsoluteUrls }: HttpConnectionManagerInput): boolean {
  if (listenerClass === "gateway") return true;
  return listenerClass === "outbound" && traits.remoteAddress === true && takesAbsoluteUrls !== true;
}

/** Headers that only proxies should set are believed from networks of the mesh. Envoy knows no such networks by itself. */
function internalAddresses(input: HttpConnectionManagerInput): Manager {
  if (input.traits.internalNetworks !== true && !usesRemoteAddress(input)) return {};
  const networks = Object.values(input.mesh.networks ?? {});
  const ranges = networks.flatMap(({ endpoints = [] }) => endpoints.flatMap(({ fromCidr }) => fromCidr || []));
  const cidrRanges = sortedRanges(ranges);
  return cidrRanges.length === 0 ? {} : { internalAddressConfig: { cidrRanges } };
}

/** The id of a request also decides whether it is traced, so that all hops agree. */
const REQUEST_ID = pack(UuidRequestIdConfigSchema, { useRequestIdForTraceSampling: true });

function routeSpecifier(routes: HttpConnectionManagerInput["routes"]): Manager["routeSpecifier"] & {} {
  if (typeof routes !== "string") return { case: "routeConfig", value: routes };
  const configSource = {
    configSourceSpecifier: { case: "ads" as const, value: {} },
    initialFetchTimeout: duration(0),
    resourceApiVersion: ApiVersion.V3,
  };
  return { case: "rds", value: { configSource, routeConfigName: routes } };
}

function pathNormalization({ pathNormalization }: MeshConfig): Manager {
  const kept = EscapedSlashes.KEEP_UNCHANGED;
  switch (pathNormalization?.normalization) {
    case "NONE":
      return { normalizePath: false, pathWithEscapedSlashesAction: kept };
    case "MERGE_SLASHES":
      return { normalizePath: true, mergeSlashes: true, pathWithEscapedSlashesAction: kept };
    case "DECODE_AND_MERGE_SLASHES":
      return {
        normalizePath: true,
        mergeSlashes: true,
        pathWithEscapedSlashesAction: EscapedSlashes.UNESCAPE_AND_FORWARD,
      };
    default:
      return { normalizePath: true, pathWithEscapedSlashesAction: kept };
  }
}

function headerOptions({ class: listenerClass, traits }: HttpConnectionManagerInput): Manager {
  const { headers } = traits;
  return {
    ...serverHeader(listenerClass, headers),
    ...(headers.requestId?.disabled === true && { generateRequestId: false }),
    ...(headers.xForwardedPort?.enabled === true && { appendXForwardedPort: true }),
    ...clientCertificate(listenerClass, traits),
  };
}

function serverHeader(listenerClass: ListenerClass, { server }: HttpTraits["headers"]): Manager {
  if (server?.disabled === true) return { serverHeaderTransformation: ServerHeader.PASS_THROUGH };
  if (server?.value && isHeaderText(server.value)) return { serverName: server.value };
  return listenerClass === "outbound" ? {} : { serverName: "istio-envoy" };
}

const FORWARD_CLIENT_CERT = {
  SANITIZE: ForwardClientCert.SANITIZE,
  FORWARD_ONLY: ForwardClientCert.FORWARD_ONLY,
  APPEND_FORWARD: ForwardClientCert.APPEND_FORWARD,
  SANITIZE_SET: ForwardClientCert.SANITIZE_SET,
  ALWAYS_FORWARD_ONLY: ForwardClientCert.ALWAYS_FORWARD_ONLY,
} as const;

/** The header with the client's certificate: a gateway writes it anew, a sidecar adds to what came from the mesh. */
function clientCertificate(listenerClass: ListenerClass, { headers, topology }: HttpTraits): Manager {
  switch (listenerClass) {
    case "outbound":
      return {};
    case "inbound":
      return {
        forwardClientCertDetails: forwarding(headers.forwardedClientCert, ForwardClientCert.APPEND_FORWARD),
        setCurrentClientCertDetails: inboundDetails(headers),
      };
    case "gateway": {
      const mode = forwarding(topology.forwardClientCertDetails, ForwardClientCert.SANITIZE_SET);
      const writes = mode === ForwardClientCert.SANITIZE_SET || mode === ForwardClientCert.APPEND_FORWARD;
      return {
        forwardClientCertDetails: mode,
        ...(writes && { setCurrentClientCertDetails: { subject: true, cert: true, dns: true, uri: true } }),
        ...(topology.numTrustedProxies && { xffNumTrustedHops: topology.numTrustedProxies }),
      };
    }
  }
}

function forwarding(
  wanted: keyof typeof FORWARD_CLIENT_CERT | "UNDEFINED" | undefined,
  fallback: ForwardClientCert,
): ForwardClientCert {
  return wanted === undefined || wanted === "UNDEFINED" ? fallback : FORWARD_CLIENT_CERT[wanted];
}

function inboundDetails({ setCurrentClientCertDetails: details }: HttpTraits["headers"]): CertDetails {
  return {
    subject: details?.subject !== false,
    uri: details?.uri !== false,
    dns: details?.dns !== false,
    cert: details?.cert === true,
    chain: details?.chain === true,
  };
}

function protocolOptions(input: HttpConnectionManagerInput): Manager {
  const { class: listenerClass, protocol, traits } = input;
  const http1: Init<typeof Http1ProtocolOptionsSchema> = {
    ...(input.takesAbsoluteUrls === true && { allowAbsoluteUrl: true }),
    ...(traits.http10 && { acceptHttp10: true }),
    ...(traits.headers.preserveHttp1HeaderCase === true && { headerKeyFormat: PRESERVE_CASE }),
  };
  const isSet = listenerClass === "gateway" || Object.keys(http1).length > 0;
  return {
    ...(isSet && { httpProtocolOptions: http1 }),
    ...(listenerClass === "inbound" && isHttp2(protocol) && { http2ProtocolOptions: {} }),
    ...(input.isQuic === true && { http3ProtocolOptions: {}, codecType: CodecType.HTTP3 }),
    ...(traits.idleTimeoutMs !== undefined && {
      commonHttpProtocolOptions: { idleTimeout: duration(traits.idleTimeoutMs) },
    }),
  };
}

function optional<Name extends string, T>(name: Name, value: T | undefined): { [N in Name]?: T } {
  return (value === undefined ? {} : { [name]: value }) as { [N in Name]?: T };
}
