/**
 * The proxy settings that the mesh config gives to all proxies (`defaultConfig`), as the control plane reads them. The
 * agent reads its own with `proxy-config.ts`, which knows no zod.
 */
import { clientTlsSchema, tcpKeepaliveSchema } from "../kinds/destination-rule/schema.ts";
import { type Infer, list, map, message, oneof } from "../schema/message.ts";
import { bool, double, duration, enumeration, int32, int64, string, uint32 } from "../schema/scalars.ts";
import { openCensusContext } from "./extension-provider.ts";

const remoteService = message({ address: string(), tlsSettings: clientTlsSchema, tcpKeepalive: tcpKeepaliveSchema });

const tracing = message(
  {
    zipkin: message({ address: string() }),
    lightstep: message({ address: string(), accessToken: string() }),
    datadog: message({ address: string() }),
    stackdriver: message({
      debug: bool(),
      maxNumberOfAttributes: int64(),
      maxNumberOfAnnotations: int64(),
      maxNumberOfMessageEvents: int64(),
    }),
    openCensusAgent: message({ address: string(), context: openCensusContext }),
    customTags: map(
      message(
        {
          literal: message({ value: string() }),
          environment: message({ name: string(), defaultValue: string() }),
          header: message({ name: string(), defaultValue: string() }),
        },
        oneof("literal", "environment", "header"),
      ),
    ),
    maxPathTagLength: uint32(),
    sampling: double(),
    tlsSettings: clientTlsSchema,
    enableIstioTags: bool(),
  },
  oneof("zipkin", "lightstep", "datadog", "stackdriver", "openCensusAgent"),
);

const readinessProbe = message(
  {
    initialDelaySeconds: int32(),
    timeoutSeconds: int32(),
    periodSeconds: int32(),
    successThreshold: int32(),
    failureThreshold: int32(),
    httpGet: message({
      path: string(),
      port: uint32(),
      host: string(),
      scheme: string(),
      httpHeaders: list(message({ name: string(), value: string() })),
    }),
    tcpSocket: message({ host: string(), port: uint32() }),
    exec: message({ command: list(string()) }),
    grpc: message({ port: uint32(), service: string() }),
  },
  oneof("httpGet", "tcpSocket", "exec", "grpc"),
);

const forwardClientCertDetails = enumeration(
  "UNDEFINED",
  "SANITIZE",
  "FORWARD_ONLY",
  "APPEND_FORWARD",
  "SANITIZE_SET",
  "ALWAYS_FORWARD_ONLY",
);

const proxyHeaders = message({
  forwardedClientCert: forwardClientCertDetails,
  setCurrentClientCertDetails: message({ subject: bool(), cert: bool(), chain: bool(), dns: bool(), uri: bool() }),
  requestId: message({ disabled: bool() }),
  server: message({ disabled: bool(), value: string() }),
  attemptCount: message({ disabled: bool() }),
  envoyDebugHeaders: message({ disabled: bool() }),
  metadataExchangeHeaders: message({ mode: enumeration("UNDEFINED", "IN_MESH") }),
  preserveHttp1HeaderCase: bool(),
  xForwardedHost: message({ enabled: bool() }),
  xForwardedPort: message({ enabled: bool() }),
});

const cryptoProvider = message({ pollDelay: duration(), fallback: bool() });

/** Schema of `defaultConfig` of the mesh config. */
export const proxyDefaultsSchema = message(
  {
    configPath: string(),
    binaryPath: string(),
    serviceCluster: string(),
    tracingServiceName: enumeration("APP_LABEL_AND_NAMESPACE", "CANONICAL_NAME_ONLY", "CANONICAL_NAME_AND_NAMESPACE"),
    drainDuration: duration(),
    discoveryAddress: string(),
    discoveryRefreshDelay: duration(),
    zipkinAddress: string(),
    statsdUdpAddress: string(),
    envoyMetricsServiceAddress: string(),
    proxyAdminPort: int32(),
    availabilityZone: string(),
    controlPlaneAuthPolicy: enumeration("NONE", "MUTUAL_TLS", "INHERIT"),
    customConfigFile: string(),
    statNameLength: int32(),
    concurrency: int32(),
    proxyBootstrapTemplatePath: string(),
    interceptionMode: enumeration("REDIRECT", "TPROXY", "NONE"),
    tracing,
    sds: message({ enabled: bool(), k8sSaJwtPath: string() }),
    envoyAccessLogService: remoteService,
    envoyMetricsService: remoteService,
    proxyMetadata: map(string()),
    runtimeValues: map(string()),
    statusPort: int32(),
    extraStatTags: list(string()),
    gatewayTopology: message({
      numTrustedProxies: uint32(),
      forwardClientCertDetails,
      proxyProtocol: message({}),
    }),
    terminationDrainDuration: duration(),
    meshId: string(),
    readinessProbe,
    proxyStatsMatcher: message({
      inclusionPrefixes: list(string()),
      inclusionSuffixes: list(string()),
      inclusionRegexps: list(string()),
    }),
    holdApplicationUntilProxyStarts: bool(),
    caCertificatesPem: list(string()),
    image: message({ imageType: string() }),
    privateKeyProvider: message({ cryptomb: cryptoProvider, qat: cryptoProvider }, oneof("cryptomb", "qat")),
    proxyHeaders,
    fileFlushInterval: duration(),
    fileFlushMinSizeKb: uint32(),
    statsCompression: bool(),
  },
  oneof("serviceCluster", "tracingServiceName"),
);

/** Proxy settings of the mesh config. */
export type ProxyDefaults = Infer<typeof proxyDefaultsSchema>;
