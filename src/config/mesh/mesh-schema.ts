/** The mesh config as a user writes it. */
import { clientTlsSchema, localityLbSchema, tcpKeepaliveSchema } from "../kinds/destination-rule/schema.ts";
import { httpRetrySchema } from "../kinds/virtual-service/schema.ts";
import { type Infer, list, map, message, oneof } from "../schema/message.ts";
import { bool, duration, enumeration, int32, string } from "../schema/scalars.ts";
import { extensionProviderSchema } from "./extension-provider.ts";
import { proxyDefaultsSchema } from "./proxy-defaults.ts";

const labelSelector = message({
  matchLabels: map(string()),
  matchExpressions: list(message({ key: string(), operator: string(), values: list(string()) })),
});

const tlsConfig = message({
  minProtocolVersion: enumeration("TLS_AUTO", "TLSV1_2", "TLSV1_3"),
  ecdhCurves: list(string()),
  cipherSuites: list(string()),
});

const caCertificate = message(
  { pem: string(), spiffeBundleUrl: string(), certSigners: list(string()), trustDomains: list(string()) },
  oneof("pem", "spiffeBundleUrl"),
);

/** Schema of the mesh config, every field optional. */
export const meshConfigSchema = message({
  proxyListenPort: int32(),
  proxyInboundListenPort: int32(),
  proxyHttpPort: int32(),
  connectTimeout: duration(),
  hboneIdleTimeout: duration(),
  protocolDetectionTimeout: duration(),
  tcpKeepalive: tcpKeepaliveSchema,
  ingressClass: string(),
  ingressService: string(),
  ingressControllerMode: enumeration("UNSPECIFIED", "OFF", "DEFAULT", "STRICT"),
  ingressSelector: string(),
  enableTracing: bool(),
  accessLogFile: string(),
  accessLogFormat: string(),
  accessLogEncoding: enumeration("TEXT", "JSON"),
  enableEnvoyAccessLogService: bool(),
  disableEnvoyListenerLog: bool(),
  defaultConfig: proxyDefaultsSchema,
  outboundTrafficPolicy: message({ mode: enumeration("REGISTRY_ONLY", "ALLOW_ANY") }),
  inboundTrafficPolicy: message({ mode: enumeration("PASSTHROUGH", "LOCALHOST") }),
  configSources: list(
    message({
      address: string(),
      tlsSettings: clientTlsSchema,
      subscribedResources: list(enumeration("SERVICE_REGISTRY")),
    }),
  ),
  enableAutoMtls: bool(),
  trustDomain: string(),
  trustDomainAliases: list(string()),
  caCertificates: list(caCertificate),
  defaultServiceExportTo: list(string()),
  defaultVirtualServiceExportTo: list(string()),
  defaultDestinationRuleExportTo: list(string()),
  rootNamespace: string(),
  localityLbSetting: localityLbSchema,
  dnsRefreshRate: duration(),
  h2UpgradePolicy: enumeration("DO_NOT_UPGRADE", "UPGRADE"),
  inboundClusterStatName: string(),
  outboundClusterStatName: string(),
  certificates: list(message({ secretName: string(), dnsNames: list(string()) })),
  serviceSettings: list(message({ settings: message({ clusterLocal: bool() }), hosts: list(string()) })),
  serviceScopeConfigs: list(
    message({
      namespaceSelector: labelSelector,
      servicesSelector: labelSelector,
      scope: enumeration("LOCAL", "GLOBAL"),
    }),
  ),
  enablePrometheusMerge: bool(),
  verifyCertificateAtClient: bool(),
  ca: message({ address: string(), tlsSettings: clientTlsSchema, requestTimeout: duration(), istiodSide: bool() }),
  extensionProviders: list(extensionProviderSchema),
  defaultProviders: message({ tracing: list(string()), metrics: list(string()), accessLogging: list(string()) }),
  discoverySelectors: list(labelSelector),
  pathNormalization: message({
    normalization: enumeration("DEFAULT", "NONE", "BASE", "MERGE_SLASHES", "DECODE_AND_MERGE_SLASHES"),
  }),
  defaultHttpRetryPolicy: httpRetrySchema,
  meshMTLS: tlsConfig,
  tlsDefaults: tlsConfig,
});

/** The mesh config as given: every field may be unset. */
export type MeshConfigFields = Infer<typeof meshConfigSchema>;
