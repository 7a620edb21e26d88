/** Access logs by the mesh config: a file, as text or as JSON, and a service that collects them. */
import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import {
  type AccessLog,
  type AccessLogFilterSchema,
  AccessLogSchema,
} from "#gen/envoy/config/accesslog/v3/accesslog_pb.ts";
import { ApiVersion } from "#gen/envoy/config/core/v3/config_source_pb.ts";
import type { SubstitutionFormatStringSchema } from "#gen/envoy/config/core/v3/substitution_format_string_pb.ts";
import { FileAccessLogSchema } from "#gen/envoy/extensions/access_loggers/file/v3/file_pb.ts";
import {
  type CommonGrpcAccessLogConfigSchema,
  HttpGrpcAccessLogConfigSchema,
  TcpGrpcAccessLogConfigSchema,
} from "#gen/envoy/extensions/access_loggers/grpc/v3/als_pb.ts";
import { ReqWithoutQuerySchema } from "#gen/envoy/extensions/formatter/req_without_query/v3/req_without_query_pb.ts";
import { derived } from "../recipes/indexes.ts";
import { type Init, pack } from "../wire/encode.ts";
import { knownFormat } from "./format-string.ts";

const TEXT_FORMAT = `${[
  '[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS%',
  '%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% "%UPSTREAM_TRANSPORT_FAILURE_REASON%"',
  '%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%"',
  '"%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%" %UPSTREAM_CLUSTER_RAW%',
  "%UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME%",
].join(" ")}\n`;

const JSON_FORMAT: JsonObject = {
  authority: "%REQ(:AUTHORITY)%",
  bytes_received: "%BYTES_RECEIVED%",
  bytes_sent: "%BYTES_SENT%",
  connection_termination_details: "%CONNECTION_TERMINATION_DETAILS%",
  downstream_local_address: "%DOWNSTREAM_LOCAL_ADDRESS%",
  downstream_remote_address: "%DOWNSTREAM_REMOTE_ADDRESS%",
  duration: "%DURATION%",
  method: "%REQ(:METHOD)%",
  path: "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
  protocol: "%PROTOCOL%",
  request_id: "%REQ(X-REQUEST-ID)%",
  requested_server_name: "%REQUESTED_SERVER_NAME%",
  response_code: "%RESPONSE_CODE%",
  response_code_details: "%RESPONSE_CODE_DETAILS%",
  response_flags: "%RESPONSE_FLAGS%",
  route_name: "%ROUTE_NAME%",
  start_time: "%START_TIME%",
  upstream_cluster: "%UPSTREAM_CLUSTER_RAW%",
  upstream_host: "%UPSTREAM_HOST%",
  upstream_local_address: "%UPSTREAM_LOCAL_ADDRESS%",
  upstream_service_time: "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%",
  upstream_transport_failure_reason: "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
  user_agent: "%REQ(USER-AGENT)%",
  x_forwarded_for: "%REQ(X-FORWARDED-FOR)%",
};

type Format = Init<typeof SubstitutionFormatStringSchema>;

/** What a log is about: requests, or connections. */
export type Logged = "http" | "tcp";

/** The logs of requests or connections: a file, the service that the proxies' bootstrap names, both or none. */
export function accessLogs(mesh: MeshConfig, logged: Logged): AccessLog[] {
  return [
    ...(mesh.accessLogFile === "" ? [] : [fileLog("", mesh)]),
    ...(mesh.enableEnvoyAccessLogService ? [SERVICE_LOGS[logged]] : []),
  ];
}

/** The logs of a listener itself: only connections for which it had no chain, since the rest is logged by the filters. */
export function listenerAccessLogs(mesh: MeshConfig): AccessLog[] {
  if (mesh.disableEnvoyListenerLog === true) return [];
  return [
    ...(mesh.accessLogFile === "" ? [] : [unmatchedLog("", mesh)]),
    ...(mesh.enableEnvoyAccessLogService ? [SERVICE_LOGS.listener] : []),
  ];
}

const NO_CHAIN: Init<typeof AccessLogFilterSchema> = {
  filterSpecifier: { case: "responseFlagFilter", value: { flags: ["NR"] } },
};

const fileLog = derived((_: string, mesh: MeshConfig) => fileAccessLog(mesh, undefined));

const unmatchedLog = derived((_: string, mesh: MeshConfig) => fileAccessLog(mesh, NO_CHAIN));

/** What Istio's own filters find out about the other side. */
const PEER_STATE = [
  "upstream_peer",
  "downstream_peer",
  "wasm.upstream_peer",
  "wasm.upstream_peer_id",
  "wasm.downstream_peer",
  "wasm.downstream_peer_id",
];

const SERVICE_LOGS: Readonly<Record<Logged | "listener", AccessLog>> = {
  http: create(AccessLogSchema, {
    name: "envoy.access_loggers.http_grpc",
    configType: {
      case: "typedConfig",
      value: pack(HttpGrpcAccessLogConfigSchema, { commonConfig: serviceLog("http_envoy_accesslog") }),
    },
  }),
  tcp: tcpServiceLog("tcp_envoy_accesslog"),
  listener: tcpServiceLog("listener_envoy_accesslog", NO_CHAIN),
};

function tcpServiceLog(logName: string, filter?: Init<typeof AccessLogFilterSchema>): AccessLog {
  const value = pack(TcpGrpcAccessLogConfigSchema, { commonConfig: serviceLog(logName) });
  return create(AccessLogSchema, {
    name: "envoy.tcp_grpc_access_log",
    configType: { case: "typedConfig", value },
    ...(filter && { filter }),
  });
}

function serviceLog(logName: string): Init<typeof CommonGrpcAccessLogConfigSchema> {
  return {
    logName,
    grpcService: { targetSpecifier: { case: "envoyGrpc", value: { clusterName: "envoy_accesslog_service" } } },
    transportApiVersion: ApiVersion.V3,
    filterStateObjectsToLog: PEER_STATE,
  };
}

function fileAccessLog(mesh: MeshConfig, filter: Init<typeof AccessLogFilterSchema> | undefined): AccessLog {
  const format =
    mesh.accessLogEncoding === "JSON" ? jsonFormat(mesh.accessLogFormat) : textFormat(mesh.accessLogFormat);
  const log = pack(FileAccessLogSchema, {
    path: mesh.accessLogFile,
    accessLogFormat: { case: "logFormat", value: format },
  });
  return create(AccessLogSchema, {
    name: "envoy.access_loggers.file",
    configType: { case: "typedConfig", value: log },
    ...(filter && { filter }),
  });
}

function textFormat(given: string): Format {
  const text = given === "" ? TEXT_FORMAT : knownFormat(given.endsWith("\n") ? given : `${given}\n`, "log");
  const source = { specifier: { case: "inlineString" as const, value: text } };
  return { format: { case: "textFormatSource", value: source }, formatters: formattersFor(text) };
}

/** A format that is no JSON object is left aside for the usual one. */
function jsonFormat(given: string): Format {
  const custom = parseObject(given);
  const value = custom === undefined ? JSON_FORMAT : knownFormats(custom);
  const operators = Object.values(value).filter((operator) => typeof operator === "string");
  return {
    format: { case: "jsonFormat", value },
    jsonFormatOptions: { sortProperties: false },
    formatters: formattersFor(operators.join(" ")),
  };
}

function knownFormats(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, knownValue(value)]));
}

function knownValue(value: JsonValue): JsonValue {
  if (typeof value === "string") return knownFormat(value, "log");
  if (Array.isArray(value)) return value.map(knownValue);
  return typeof value === "object" && value !== null ? knownFormats(value) : value;
}

function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = text === "" ? undefined : JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
  } catch {
    return undefined; // Not JSON: the caller has a format of its own.
  }
}

/** Operators that Envoy knows only by an extension. */
function formattersFor(text: string) {
  if (!text.includes("%REQ_WITHOUT_QUERY")) return [];
  return [{ name: "envoy.formatter.req_without_query", typedConfig: pack(ReqWithoutQuerySchema, {}) }];
}
