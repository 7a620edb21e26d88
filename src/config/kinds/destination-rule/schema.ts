/** networking.istio.io DestinationRule: what happens to traffic after routing has chosen a host. */
import { field } from "../../schema/field.ts";
import { type Infer, list, map, message, oneof, required } from "../../schema/message.ts";
import {
  bool,
  double,
  duration,
  enumeration,
  int32,
  positiveDuration,
  string,
  uint32,
  uint64,
} from "../../schema/scalars.ts";
import { exportToField, workloadSelectorSchema } from "../../selection/schema.ts";

const consistentHashSchema = message(
  {
    httpHeaderName: string(),
    httpCookie: message({
      name: required(string()),
      path: string(),
      ttl: duration(),
      attributes: list(message({ name: required(string()), value: string() })),
    }),
    useSourceIp: bool(),
    httpQueryParameterName: string(),
    ringHash: message({ minimumRingSize: uint64() }),
    maglev: message({ tableSize: uint64() }),
    minimumRingSize: uint64(),
  },
  oneof("httpHeaderName", "httpCookie", "useSourceIp", "httpQueryParameterName"),
  oneof("ringHash", "maglev"),
);

/** Preference of near endpoints; also the mesh-wide default in the mesh config. */
export const localityLbSchema = message({
  distribute: list(message({ from: string(), to: map(uint32()) })),
  failover: list(message({ from: string(), to: string() })),
  failoverPriority: list(string()),
  enabled: field(bool(), { nullable: true }),
});

const loadBalancerSchema = message(
  {
    simple: enumeration("UNSPECIFIED", "LEAST_CONN", "RANDOM", "PASSTHROUGH", "ROUND_ROBIN", "LEAST_REQUEST"),
    consistentHash: consistentHashSchema,
    localityLbSetting: localityLbSchema,
    warmupDurationSecs: positiveDuration(),
    warmup: message({
      duration: required(positiveDuration()),
      minimumPercent: field(double(), { nullable: true, minimum: 0, maximum: 100 }),
      aggression: field(double(), { nullable: true, minimum: 0 }),
    }),
  },
  oneof("simple", "consistentHash"),
);

/** TCP keep-alive; also the mesh-wide default in the mesh config. */
export const tcpKeepaliveSchema = message({ probes: uint32(), time: positiveDuration(), interval: positiveDuration() });

/** Limits on connections and requests; a Sidecar has them for its own ports. */
export const connectionPoolSchema = message({
  tcp: message({
    maxConnections: int32(),
    connectTimeout: positiveDuration(),
    tcpKeepalive: tcpKeepaliveSchema,
    maxConnectionDuration: positiveDuration(),
    idleTimeout: duration(),
  }),
  http: message({
    http1MaxPendingRequests: int32(),
    http2MaxRequests: int32(),
    maxRequestsPerConnection: int32(),
    maxRetries: int32(),
    idleTimeout: positiveDuration(),
    h2UpgradePolicy: enumeration("DEFAULT", "DO_NOT_UPGRADE", "UPGRADE"),
    useClientProtocol: bool(),
    maxConcurrentStreams: int32(),
  }),
});

const outlierDetectionSchema = message({
  consecutiveErrors: int32(),
  splitExternalLocalOriginErrors: bool(),
  consecutiveLocalOriginFailures: field(uint32(), { nullable: true }),
  consecutiveGatewayErrors: field(uint32(), { nullable: true }),
  consecutive5xxErrors: field(uint32(), { nullable: true }),
  interval: positiveDuration(),
  baseEjectionTime: positiveDuration(),
  maxEjectionPercent: int32(),
  minHealthPercent: int32(),
});

/** DISABLE when unset. */
const clientTlsMode = enumeration("DISABLE", "SIMPLE", "MUTUAL", "ISTIO_MUTUAL");

const clientTlsFields = {
  mode: clientTlsMode,
  clientCertificate: string(),
  privateKey: string(),
  caCertificates: string(),
  credentialName: field(string(), { description: "The Secret with certificate and key" }),
  subjectAltNames: list(string()),
  sni: string(),
  insecureSkipVerify: field(bool(), { nullable: true }),
  caCrl: string(),
};

/** TLS towards an upstream. */
export const clientTlsSchema = message(clientTlsFields);

const portTrafficPolicySchema = message({
  port: message({ number: uint32() }),
  loadBalancer: loadBalancerSchema,
  connectionPool: connectionPoolSchema,
  outlierDetection: outlierDetectionSchema,
  tls: clientTlsSchema,
});

/** Settings of single ports do not repeat the description. */
const describedTlsMode = field(clientTlsMode, {
  description: "DISABLE, SIMPLE, MUTUAL with own certificates, or ISTIO_MUTUAL with those of the mesh",
});

const trafficPolicySchema = message({
  loadBalancer: field(loadBalancerSchema, { description: "How an endpoint is chosen" }),
  connectionPool: field(connectionPoolSchema, { description: "Limits of connections and requests" }),
  outlierDetection: field(outlierDetectionSchema, {
    description: "When endpoints that fail are left out for a while",
  }),
  tls: field(message({ ...clientTlsFields, mode: describedTlsMode }), { description: "TLS towards the service" }),
  portLevelSettings: field(list(portTrafficPolicySchema), {
    description: "Other settings for single ports",
    maxItems: 4096,
  }),
  tunnel: message({ protocol: string(), targetHost: required(string()), targetPort: required(uint32()) }),
  proxyProtocol: message({ version: enumeration("V1", "V2") }),
  retryBudget: message({
    percent: field(double(), { nullable: true, minimum: 0, maximum: 100 }),
    minRetryConcurrency: uint32(),
  }),
});

const trafficPolicyField = field(trafficPolicySchema, {
  description: "Load balancing, connections, health and TLS",
});

const subsetSchema = message({
  name: required(string()),
  labels: map(string()),
  trafficPolicy: trafficPolicyField,
});

/** Schema of the spec of a DestinationRule. */
export const destinationRuleSchema = message({
  host: required(field(string(), { description: "The service that the rule is about" })),
  trafficPolicy: trafficPolicyField,
  subsets: field(list(subsetSchema), { description: "Parts of the service by labels, such as its versions" }),
  exportTo: exportToField,
  workloadSelector: field(workloadSelectorSchema, {
    description: "Workloads that it is for, by labels; without it all of the namespace",
    isBrief: true,
  }),
});

/** The spec of a DestinationRule. */
export type DestinationRule = Infer<typeof destinationRuleSchema>;
/** How connections to a host or subset are made. */
export type TrafficPolicy = Infer<typeof trafficPolicySchema>;
/** The same for one port. */
export type PortTrafficPolicy = Infer<typeof portTrafficPolicySchema>;
/** How an endpoint is chosen. */
export type LoadBalancer = Infer<typeof loadBalancerSchema>;
/** Choice by a property of the request. */
export type ConsistentHash = Infer<typeof consistentHashSchema>;
/** Preference of near endpoints. */
export type LocalityLb = Infer<typeof localityLbSchema>;
/** Limits on connections and requests. */
export type ConnectionPool = Infer<typeof connectionPoolSchema>;
/** When an endpoint is taken out of service for a while. */
export type OutlierDetection = Infer<typeof outlierDetectionSchema>;
/** TLS towards an upstream. */
export type ClientTls = Infer<typeof clientTlsSchema>;
