/** networking.istio.io VirtualService: how requests to a host are matched, changed and sent on. */
import { field } from "../../schema/field.ts";
import { type Infer, list, map, message, oneof, required } from "../../schema/message.ts";
import {
  bool,
  bytes,
  double,
  enumeration,
  int32,
  positiveDuration,
  regex,
  string,
  uint32,
} from "../../schema/scalars.ts";
import { exportToField } from "../../selection/schema.ts";

const stringMatchSchema = message(
  { exact: string(), prefix: string(), regex: regex() },
  oneof("exact", "prefix", "regex"),
);

/** From 0 to 100. */
const percentSchema = message({ value: double() });

/** A host, and perhaps a subset and a port of it. */
export const destinationSchema = message({
  host: required(field(string(), { description: "Name of a service" })),
  subset: field(string(), { description: "A subset that a DestinationRule defines" }),
  port: field(message({ number: uint32() }), { description: "Port of the service, where it has several" }),
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

const weight = field(int32(), { description: "Its share of all weights" });

const httpRouteDestinationSchema = message({
  destination: required(destinationSchema),
  weight,
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
  attempts: field(int32(), { description: "How often it is tried again" }),
  perTryTimeout: field(positiveDuration(), { description: "How long one attempt may take" }),
  retryOn: field(string(), { description: "Conditions, such as 5xx,connect-failure" }),
  retryRemoteLocalities: field(bool(), { nullable: true }),
  retryIgnorePreviousHosts: field(bool(), { nullable: true }),
  backoff: positiveDuration(),
});

const corsPolicySchema = message({
  allowOrigin: list(string()),
  allowOrigins: list(stringMatchSchema),
  allowMethods: list(string()),
  allowHeaders: list(string()),
  exposeHeaders: list(string()),
  maxAge: positiveDuration(),
  allowCredentials: field(bool(), { nullable: true }),
  unmatchedPreflights: enumeration("UNSPECIFIED", "FORWARD", "IGNORE"),
});

const delaySchema = message(
  { percent: int32(), fixedDelay: positiveDuration(), exponentialDelay: positiveDuration(), percentage: percentSchema },
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
  match: field(list(httpMatchSchema), { description: "One of these has to hold; without any, every request matches" }),
  route: field(list(httpRouteDestinationSchema), { description: "Destinations, by weight" }),
  redirect: field(httpRedirectSchema, { description: "Answers with a redirection" }),
  directResponse: field(httpDirectResponseSchema, { description: "Answers with a status and a body" }),
  delegate: field(message({ name: string(), namespace: string() }), {
    description: "Another VirtualService that has the routes",
  }),
  rewrite: field(httpRewriteSchema, { description: "Changes path or authority before the request is sent on" }),
  timeout: field(positiveDuration(), { description: "How long the whole request may take, such as 5s" }),
  retries: field(httpRetrySchema, { description: "When and how often a request is tried again" }),
  fault: field(httpFaultSchema, { description: "Delays or refuses requests on purpose" }),
  mirror: field(destinationSchema, { description: "Where a copy of the request goes", isBrief: true }),
  mirrors: field(list(httpMirrorSchema), { description: "Where copies of the request go" }),
  mirrorPercent: field(uint32(), { formerName: "mirror_percent", nullable: true }),
  mirrorPercentage: field(percentSchema, { description: "How many requests are copied" }),
  corsPolicy: field(corsPolicySchema, { description: "Who may call from pages of other origins" }),
  headers: field(headersSchema, { description: "Headers that are set, added or removed" }),
});

const routeDestinationSchema = message({ destination: required(destinationSchema), weight });

const tlsMatchSchema = message({
  sniHosts: field(list(string()), { isRequired: true }),
  destinationSubnets: list(string()),
  port: uint32(),
  sourceLabels: map(string()),
  gateways: list(string()),
  sourceNamespace: string(),
});
const tlsRouteSchema = message({
  match: field(list(tlsMatchSchema), { isRequired: true }),
  route: list(routeDestinationSchema),
});

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
  hosts: field(list(string()), {
    description: "Names that requests are addressed to; `*.example.com` stands for many",
  }),
  gateways: field(list(string()), {
    description: "Gateways where the routes hold; `mesh` stands for all sidecars and is the default",
  }),
  http: field(list(httpRouteSchema), { description: "Routes of HTTP requests; the first that matches counts" }),
  tls: field(list(tlsRouteSchema), {
    description: "Routes of TLS connections that are not ended here, by server name",
  }),
  tcp: field(list(tcpRouteSchema), { description: "Routes of all other connections" }),
  exportTo: exportToField,
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
