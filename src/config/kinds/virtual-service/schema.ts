/** networking.istio.io VirtualService: how requests to a host are matched, changed and sent on. */
import { type Infer, list, map, message, oneof, required } from "../../schema/message.ts";
import { bool, bytes, double, duration, enumeration, int32, regex, string, uint32 } from "../../schema/scalars.ts";

const stringMatchSchema = message(
  { exact: string(), prefix: string(), regex: regex() },
  oneof("exact", "prefix", "regex"),
);

/** From 0 to 100. */
const percentSchema = message({ value: double() });

/** A host, and perhaps a subset and a port of it. */
export const destinationSchema = message({
  host: required(string()),
  subset: string(),
  port: message({ number: uint32() }),
});

const headerOperationsSchema = message({ set: map(string()), add: map(string()), remove: list(string()) });
const headersSchema = message({ request: headerOperationsSchema, response: headerOperationsSchema });

const httpMatchSchema = message({
  name: string(),
  uri: stringMatchSchema,
  scheme: stringMatchSchema,
  method: stringMatchSchema,
  authority: stringMatchSchema,
  headers: map(stringMatchSchema),
  port: uint32(),
  sourceLabels: map(string()),
  gateways: list(string()),
  queryParams: map(stringMatchSchema),
  ignoreUriCase: bool(),
  withoutHeaders: map(stringMatchSchema),
  sourceNamespace: string(),
  statPrefix: string(),
});

const httpRouteDestinationSchema = message({
  destination: required(destinationSchema),
  weight: int32(),
  headers: headersSchema,
});

const httpRedirectSchema = message(
  {
    uri: string(),
    authority: string(),
    port: uint32(),
    derivePort: enumeration("FROM_PROTOCOL_DEFAULT", "FROM_REQUEST_PORT"),
    scheme: string(),
    redirectCode: uint32(),
  },
  oneof("port", "derivePort"),
);

const httpDirectResponseSchema = message({
  status: required(uint32()),
  body: message({ string: string(), bytes: bytes() }, oneof("string", "bytes")),
});

const httpRewriteSchema = message({
  uri: string(),
  authority: string(),
  uriRegexRewrite: message({ match: regex(), rewrite: string() }),
});

/** Retries; also the mesh-wide default in the mesh config. */
export const httpRetrySchema = message({
  attempts: int32(),
  perTryTimeout: duration(),
  retryOn: string(),
  retryRemoteLocalities: bool(),
  retryIgnorePreviousHosts: bool(),
  backoff: duration(),
});

const corsPolicySchema = message({
  allowOrigin: list(string()),
  allowOrigins: list(stringMatchSchema),
  allowMethods: list(string()),
  allowHeaders: list(string()),
  exposeHeaders: list(string()),
  maxAge: duration(),
  allowCredentials: bool(),
  unmatchedPreflights: enumeration("UNSPECIFIED", "FORWARD", "IGNORE"),
});

const delaySchema = message(
  { percent: int32(), fixedDelay: duration(), exponentialDelay: duration(), percentage: percentSchema },
  oneof("fixedDelay", "exponentialDelay"),
);
const abortSchema = message(
  { httpStatus: int32(), grpcStatus: string(), http2Error: string(), percentage: percentSchema },
  oneof("httpStatus", "grpcStatus", "http2Error"),
);
const httpFaultSchema = message({ delay: delaySchema, abort: abortSchema });

const httpMirrorSchema = message({ destination: required(destinationSchema), percentage: percentSchema });

const httpRouteSchema = message({
  name: string(),
  match: list(httpMatchSchema),
  route: list(httpRouteDestinationSchema),
  redirect: httpRedirectSchema,
  directResponse: httpDirectResponseSchema,
  delegate: message({ name: string(), namespace: string() }),
  rewrite: httpRewriteSchema,
  timeout: duration(),
  retries: httpRetrySchema,
  fault: httpFaultSchema,
  mirror: destinationSchema,
  mirrors: list(httpMirrorSchema),
  mirrorPercent: uint32(),
  mirrorPercentage: percentSchema,
  corsPolicy: corsPolicySchema,
  headers: headersSchema,
});

const routeDestinationSchema = message({ destination: required(destinationSchema), weight: int32() });

const tlsMatchSchema = message({
  sniHosts: list(string()),
  destinationSubnets: list(string()),
  port: uint32(),
  sourceLabels: map(string()),
  gateways: list(string()),
  sourceNamespace: string(),
});
const tlsRouteSchema = message({ match: list(tlsMatchSchema), route: list(routeDestinationSchema) });

const l4MatchSchema = message({
  destinationSubnets: list(string()),
  port: uint32(),
  sourceSubnet: string(),
  sourceLabels: map(string()),
  gateways: list(string()),
  sourceNamespace: string(),
});
const tcpRouteSchema = message({ match: list(l4MatchSchema), route: list(routeDestinationSchema) });

/** Schema of the spec of a VirtualService. */
export const virtualServiceSchema = message({
  hosts: list(string()),
  /** `mesh` when unset. */
  gateways: list(string()),
  http: list(httpRouteSchema),
  tls: list(tlsRouteSchema),
  tcp: list(tcpRouteSchema),
  exportTo: list(string()),
});

/** The spec of a VirtualService. */
export type VirtualService = Infer<typeof virtualServiceSchema>;
/** One route of HTTP requests. */
export type HttpRoute = Infer<typeof httpRouteSchema>;
/** Conditions on a request; all of them have to hold. */
export type HttpMatch = Infer<typeof httpMatchSchema>;
/** A destination with its weight, and the headers changed for it. */
export type HttpRouteDestination = Infer<typeof httpRouteDestinationSchema>;
/** An answer that sends the caller elsewhere. */
export type HttpRedirect = Infer<typeof httpRedirectSchema>;
/** An answer that is fixed. */
export type HttpDirectResponse = Infer<typeof httpDirectResponseSchema>;
/** A path or host that is exchanged on the way. */
export type HttpRewrite = Infer<typeof httpRewriteSchema>;
/** How failed requests are repeated. */
export type HttpRetry = Infer<typeof httpRetrySchema>;
/** Faults that are made on purpose. */
export type HttpFault = Infer<typeof httpFaultSchema>;
/** Where copies of requests go. */
export type HttpMirror = Infer<typeof httpMirrorSchema>;
/** What other sites may do, as browsers ask it. */
export type CorsPolicy = Infer<typeof corsPolicySchema>;
/** Changes of headers on the way there and back. */
export type Headers = Infer<typeof headersSchema>;
/** Changes of headers in one direction. */
export type HeaderOperations = Infer<typeof headerOperationsSchema>;
/** A service, or a subset of it. */
export type Destination = Infer<typeof destinationSchema>;
/** A match of text; nothing set matches everything. */
export type StringMatch = Infer<typeof stringMatchSchema>;
/** A share from 0 to 100. */
export type Percent = Infer<typeof percentSchema>;
/** One route of TLS connections that are not terminated. */
export type TlsRoute = Infer<typeof tlsRouteSchema>;
/** Conditions on a TLS connection. */
export type TlsMatch = Infer<typeof tlsMatchSchema>;
/** One route of TCP connections. */
export type TcpRoute = Infer<typeof tcpRouteSchema>;
/** Conditions on a TCP connection. */
export type L4Match = Infer<typeof l4MatchSchema>;
/** A destination with its weight. */
export type RouteDestination = Infer<typeof routeDestinationSchema>;
