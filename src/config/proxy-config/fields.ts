/** The fields of ProxyConfig (`mesh.v1alpha1.ProxyConfig` of the API). */
import {
  double,
  duration,
  enumeration,
  flag,
  integer,
  list,
  long,
  map,
  message,
  type Read,
  text,
  unsigned,
  wrapped,
} from "./schema.ts";

const optionalFlag = wrapped(flag, false);
const optionalInteger = wrapped(integer, 0);
const address = message({ address: text });
const disabled = message({ disabled: optionalFlag });
const enabled = message({ enabled: optionalFlag });
const forwardClientCert = enumeration(
  "UNDEFINED",
  "SANITIZE",
  "FORWARD_ONLY",
  "APPEND_FORWARD",
  "SANITIZE_SET",
  "ALWAYS_FORWARD_ONLY",
);

const tlsSettings = message({
  mode: enumeration("DISABLE", "SIMPLE", "MUTUAL", "ISTIO_MUTUAL"),
  clientCertificate: text,
  privateKey: text,
  caCertificates: text,
  credentialName: text,
  subjectAltNames: list(text),
  sni: text,
  insecureSkipVerify: optionalFlag,
  caCrl: text,
});

const remoteService = message({
  address: text,
  tlsSettings,
  tcpKeepalive: message({ probes: unsigned, time: duration, interval: duration }),
});

const TRACERS = ["zipkin", "lightstep", "datadog", "stackdriver", "openCensusAgent"];
const tracing = message(
  {
    zipkin: address,
    lightstep: message({ address: text, accessToken: text }),
    datadog: address,
    stackdriver: message({
      debug: flag,
      maxNumberOfAttributes: long,
      maxNumberOfAnnotations: long,
      maxNumberOfMessageEvents: long,
    }),
    openCensusAgent: message({
      address: text,
      context: list(
        wrapped(
          enumeration("UNSPECIFIED", "W3C_TRACE_CONTEXT", "GRPC_BIN", "CLOUD_TRACE_CONTEXT", "B3"),
          "UNSPECIFIED",
        ),
        "UNSPECIFIED",
      ),
    }),
    customTags: map(
      message(
        {
          literal: message({ value: text }),
          environment: message({ name: text, defaultValue: text }),
          header: message({ name: text, defaultValue: text }),
        },
        { names: ["literal", "environment", "header"] },
      ),
      {},
    ),
    maxPathTagLength: unsigned,
    sampling: double,
    tlsSettings,
    enableIstioTags: optionalFlag,
  },
  { names: TRACERS },
);

const readinessProbe = message(
  {
    initialDelaySeconds: integer,
    timeoutSeconds: integer,
    periodSeconds: integer,
    successThreshold: integer,
    failureThreshold: integer,
    httpGet: message({
      path: text,
      port: unsigned,
      host: text,
      scheme: text,
      httpHeaders: list(message({ name: text, value: text }), {}),
    }),
    tcpSocket: message({ host: text, port: unsigned }),
    exec: message({ command: list(text) }),
    grpc: message({ service: text, port: unsigned }),
  },
  // Nobody could say which of them the application was meant to answer.
  { names: ["httpGet", "tcpSocket", "exec", "grpc"], strict: true },
);

const proxyHeaders = message({
  forwardedClientCert: forwardClientCert,
  setCurrentClientCertDetails: message({
    subject: optionalFlag,
    cert: optionalFlag,
    chain: optionalFlag,
    dns: optionalFlag,
    uri: optionalFlag,
  }),
  requestId: disabled,
  server: message({ disabled: optionalFlag, value: text }),
  attemptCount: disabled,
  envoyDebugHeaders: disabled,
  metadataExchangeHeaders: message({ mode: enumeration("UNDEFINED", "IN_MESH") }),
  preserveHttp1HeaderCase: optionalFlag,
  xForwardedHost: enabled,
  xForwardedPort: enabled,
});

const pollingProvider = message({ pollDelay: duration, fallback: optionalFlag });

/** How to read each field. */
export const PROXY_CONFIG_FIELDS: Readonly<Record<string, Read>> = {
  configPath: text,
  binaryPath: text,
  serviceCluster: wrapped(text, ""),
  tracingServiceName: wrapped(
    enumeration("APP_LABEL_AND_NAMESPACE", "CANONICAL_NAME_ONLY", "CANONICAL_NAME_AND_NAMESPACE"),
    "APP_LABEL_AND_NAMESPACE",
  ),
  drainDuration: duration,
  discoveryAddress: text,
  discoveryRefreshDelay: duration,
  zipkinAddress: text,
  statsdUdpAddress: text,
  envoyMetricsServiceAddress: text,
  proxyAdminPort: integer,
  availabilityZone: text,
  controlPlaneAuthPolicy: enumeration("NONE", "MUTUAL_TLS"),
  customConfigFile: text,
  statNameLength: integer,
  concurrency: optionalInteger,
  proxyBootstrapTemplatePath: text,
  interceptionMode: enumeration("REDIRECT", "TPROXY", "NONE"),
  tracing,
  sds: message({ enabled: flag, k8sSaJwtPath: text }),
  envoyAccessLogService: remoteService,
  envoyMetricsService: remoteService,
  proxyMetadata: map(text),
  runtimeValues: map(text),
  statusPort: integer,
  extraStatTags: list(text),
  gatewayTopology: message({
    numTrustedProxies: unsigned,
    forwardClientCertDetails: forwardClientCert,
    proxyProtocol: message({}),
  }),
  terminationDrainDuration: duration,
  meshId: text,
  readinessProbe,
  proxyStatsMatcher: message({
    inclusionPrefixes: list(text),
    inclusionSuffixes: list(text),
    inclusionRegexps: list(text),
  }),
  holdApplicationUntilProxyStarts: optionalFlag,
  caCertificatesPem: list(text),
  image: message({ imageType: text }),
  privateKeyProvider: message({ cryptomb: pollingProvider, qat: pollingProvider }, { names: ["cryptomb", "qat"] }),
  proxyHeaders,
  fileFlushInterval: duration,
  fileFlushMinSizeKb: unsigned,
  statsCompression: optionalFlag,
};

/** Fields of older versions that have no effect any more; they are still found in many installations. */
export const RETIRED_FIELDS: ReadonlySet<string> = new Set([
  "parentShutdownDuration",
  "parent_shutdown_duration",
  "connectTimeout",
  "connect_timeout",
]);
