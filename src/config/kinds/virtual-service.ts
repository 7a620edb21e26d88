/** networking.istio.io VirtualService: how requests to a host are matched, changed and sent on. */
import { type Infer, list, map, message, oneof, required } from "../schema/message.ts";
import { bool, bytes, double, duration, enumeration, int32, string, uint32 } from "../schema/scalars.ts";

const stringMatchSchema = message(
  { exact: string(), prefix: string(), regex: string() },
  oneof("exact", "prefix", "regex"),
);

/** From 0 to 100. */
const percentSchema = message({ value: double() });

/** A service, or a subset of it, to which traffic goes. */
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
  uriRegexRewrite: message({ match: string(), rewrite: string() }),
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

export type VirtualService = Infer<typeof virtualServiceSchema>;
export type HttpRoute = Infer<typeof httpRouteSchema>;
export type HttpMatch = Infer<typeof httpMatchSchema>;
export type HttpRouteDestination = Infer<typeof httpRouteDestinationSchema>;
export type HttpRedirect = Infer<typeof httpRedirectSchema>;
export type HttpDirectResponse = Infer<typeof httpDirectResponseSchema>;
export type HttpRewrite = Infer<typeof httpRewriteSchema>;
export type HttpRetry = Infer<typeof httpRetrySchema>;
export type HttpFault = Infer<typeof httpFaultSchema>;
export type HttpMirror = Infer<typeof httpMirrorSchema>;
export type CorsPolicy = Infer<typeof corsPolicySchema>;
export type Headers = Infer<typeof headersSchema>;
export type HeaderOperations = Infer<typeof headerOperationsSchema>;
export type Destination = Infer<typeof destinationSchema>;
export type StringMatch = Infer<typeof stringMatchSchema>;
export type Percent = Infer<typeof percentSchema>;
export type TlsRoute = Infer<typeof tlsRouteSchema>;
export type TlsMatch = Infer<typeof tlsMatchSchema>;
export type TcpRoute = Infer<typeof tcpRouteSchema>;
export type L4Match = Infer<typeof l4MatchSchema>;
export type RouteDestination = Infer<typeof routeDestinationSchema>;
