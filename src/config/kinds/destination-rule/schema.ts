/** networking.istio.io DestinationRule: what happens to traffic after routing has chosen a host. */
import { type Infer, list, map, message, oneof, required } from "../../schema/message.ts";
import { bool, double, duration, enumeration, int32, string, uint32, uint64 } from "../../schema/scalars.ts";
import { workloadSelectorSchema } from "../../selection/schema.ts";

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
  enabled: bool(),
});

const loadBalancerSchema = message(
  {
    simple: enumeration("UNSPECIFIED", "LEAST_CONN", "RANDOM", "PASSTHROUGH", "ROUND_ROBIN", "LEAST_REQUEST"),
    consistentHash: consistentHashSchema,
    localityLbSetting: localityLbSchema,
    warmupDurationSecs: duration(),
    warmup: message({ duration: required(duration()), minimumPercent: double(), aggression: double() }),
  },
  oneof("simple", "consistentHash"),
);

/** TCP keep-alive; also the mesh-wide default in the mesh config. */
export const tcpKeepaliveSchema = message({ probes: uint32(), time: duration(), interval: duration() });

/** Limits on connections and requests; a Sidecar has them for its own ports. */
export const connectionPoolSchema = message({
  tcp: message({
    maxConnections: int32(),
    connectTimeout: duration(),
    tcpKeepalive: tcpKeepaliveSchema,
    maxConnectionDuration: duration(),
    idleTimeout: duration(),
  }),
  http: message({
    http1MaxPendingRequests: int32(),
    http2MaxRequests: int32(),
    maxRequestsPerConnection: int32(),
    maxRetries: int32(),
    idleTimeout: duration(),
    h2UpgradePolicy: enumeration("DEFAULT", "DO_NOT_UPGRADE", "UPGRADE"),
    useClientProtocol: bool(),
    maxConcurrentStreams: int32(),
  }),
});

const outlierDetectionSchema = message({
  consecutiveErrors: int32(),
  splitExternalLocalOriginErrors: bool(),
  consecutiveLocalOriginFailures: uint32(),
  consecutiveGatewayErrors: uint32(),
  consecutive5xxErrors: uint32(),
  interval: duration(),
  baseEjectionTime: duration(),
  maxEjectionPercent: int32(),
  minHealthPercent: int32(),
});

/** TLS towards an upstream. */
export const clientTlsSchema = message({
  /** DISABLE when unset. */
  mode: enumeration("DISABLE", "SIMPLE", "MUTUAL", "ISTIO_MUTUAL"),
  clientCertificate: string(),
  privateKey: string(),
  caCertificates: string(),
  credentialName: string(),
  subjectAltNames: list(string()),
  sni: string(),
  insecureSkipVerify: bool(),
  caCrl: string(),
});

const portTrafficPolicySchema = message({
  port: message({ number: uint32() }),
  loadBalancer: loadBalancerSchema,
  connectionPool: connectionPoolSchema,
  outlierDetection: outlierDetectionSchema,
  tls: clientTlsSchema,
});

const trafficPolicySchema = message({
  loadBalancer: loadBalancerSchema,
  connectionPool: connectionPoolSchema,
  outlierDetection: outlierDetectionSchema,
  tls: clientTlsSchema,
  portLevelSettings: list(portTrafficPolicySchema),
  tunnel: message({ protocol: string(), targetHost: required(string()), targetPort: required(uint32()) }),
  proxyProtocol: message({ version: enumeration("V1", "V2") }),
  retryBudget: message({ percent: double(), minRetryConcurrency: uint32() }),
});

const subsetSchema = message({
  name: required(string()),
  labels: map(string()),
  trafficPolicy: trafficPolicySchema,
});

/** Schema of the spec of a DestinationRule. */
export const destinationRuleSchema = message({
  host: required(string()),
  trafficPolicy: trafficPolicySchema,
  subsets: list(subsetSchema),
  exportTo: list(string()),
  workloadSelector: workloadSelectorSchema,
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
