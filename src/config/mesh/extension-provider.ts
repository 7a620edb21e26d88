/** Providers of tracing, access logs, metrics and authorization that telemetry and policies refer to by name. */
import { type Infer, list, map, message, oneof } from "../schema/message.ts";
import { bool, duration, enumeration, int32, int64, string, struct, uint32 } from "../schema/scalars.ts";

const httpHeaders = list(message({ name: string(), value: string(), envName: string() }, oneof("value", "envName")));
const httpService = message({ path: string(), timeout: duration(), headers: httpHeaders });

const requestBody = message({ maxRequestBytes: uint32(), allowPartialMessage: bool(), packAsBytes: bool() });

const envoyExtAuthzHttp = message({
  service: string(),
  port: uint32(),
  timeout: duration(),
  pathPrefix: string(),
  failOpen: bool(),
  clearRouteCache: bool(),
  statusOnError: string(),
  includeHeadersInCheck: list(string()),
  includeRequestHeadersInCheck: list(string()),
  includeAdditionalHeadersInCheck: map(string()),
  includeRequestBodyInCheck: requestBody,
  headersToUpstreamOnAllow: list(string()),
  headersToDownstreamOnDeny: list(string()),
  headersToDownstreamOnAllow: list(string()),
});

const envoyExtAuthzGrpc = message({
  service: string(),
  port: uint32(),
  timeout: duration(),
  failOpen: bool(),
  clearRouteCache: bool(),
  statusOnError: string(),
  includeRequestBodyInCheck: requestBody,
});

const zipkin = message({
  service: string(),
  port: uint32(),
  maxTagLength: uint32(),
  enable64bitTraceId: bool(),
  path: string(),
  traceContextOption: enumeration("USE_B3", "USE_B3_WITH_W3C_PROPAGATION"),
  timeout: duration(),
  headers: httpHeaders,
});

const stackdriver = message({
  debug: bool(),
  maxNumberOfAttributes: int64(),
  maxNumberOfAnnotations: int64(),
  maxNumberOfMessageEvents: int64(),
  maxTagLength: uint32(),
  logging: message({ labels: map(string()) }),
});

/** Formats in which OpenCensus carries a trace; also in the tracing settings of a proxy. */
export const openCensusContext = list(
  enumeration("UNSPECIFIED", "W3C_TRACE_CONTEXT", "GRPC_BIN", "CLOUD_TRACE_CONTEXT", "B3"),
);

const opentelemetry = message({
  service: string(),
  port: uint32(),
  maxTagLength: uint32(),
  http: httpService,
  grpc: message({ timeout: duration(), initialMetadata: httpHeaders }),
  resourceDetectors: message({ environment: message({}), dynatrace: message({}) }),
  dynatraceSampler: message({
    tenant: string(),
    clusterId: int32(),
    rootSpansPerMinute: uint32(),
    httpService: message({ service: string(), port: uint32(), http: httpService }),
  }),
});

const envoyFileAccessLog = message({
  path: string(),
  logFormat: message({ text: string(), labels: struct() }, oneof("text", "labels")),
  omitEmptyValues: bool(),
});

const envoyHttpAls = message({
  service: string(),
  port: uint32(),
  logName: string(),
  filterStateObjectsToLog: list(string()),
  additionalRequestHeadersToLog: list(string()),
  additionalResponseHeadersToLog: list(string()),
  additionalResponseTrailersToLog: list(string()),
});

/** Schema of one extension provider of the mesh config. */
export const extensionProviderSchema = message(
  {
    name: string(),
    envoyExtAuthzHttp,
    envoyExtAuthzGrpc,
    zipkin,
    lightstep: message({ service: string(), port: uint32(), accessToken: string(), maxTagLength: uint32() }),
    datadog: message({ service: string(), port: uint32(), maxTagLength: uint32() }),
    stackdriver,
    opencensus: message({ service: string(), port: uint32(), context: openCensusContext, maxTagLength: uint32() }),
    skywalking: message({ service: string(), port: uint32(), accessToken: string() }),
    opentelemetry,
    prometheus: message({}),
    envoyFileAccessLog,
    envoyHttpAls,
    envoyTcpAls: message({
      service: string(),
      port: uint32(),
      logName: string(),
      filterStateObjectsToLog: list(string()),
    }),
    envoyOtelAls: message({
      service: string(),
      port: uint32(),
      logName: string(),
      logFormat: message({ text: string(), labels: struct() }),
    }),
    sds: message({ name: string(), service: string(), port: uint32() }),
  },
  oneof(
    "envoyExtAuthzHttp",
    "envoyExtAuthzGrpc",
    "zipkin",
    "lightstep",
    "datadog",
    "stackdriver",
    "opencensus",
    "skywalking",
    "opentelemetry",
    "prometheus",
    "envoyFileAccessLog",
    "envoyHttpAls",
    "envoyTcpAls",
    "envoyOtelAls",
    "sds",
  ),
);

/** One extension provider. */
export type ExtensionProvider = Infer<typeof extensionProviderSchema>;
