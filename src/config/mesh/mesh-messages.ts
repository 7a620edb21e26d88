/** The messages of the mesh config as templates see them. How the table reads: `message-value.ts`. */
export const MESH_MESSAGES = `
ProxyConfig
  ConfigPath string; BinaryPath string; ServiceCluster| string; TracingServiceName| enum.APP_LABEL_AND_NAMESPACE;
  DrainDuration Duration; DiscoveryAddress string; DiscoveryRefreshDelay Duration; ZipkinAddress string;
  StatsdUdpAddress string; EnvoyMetricsServiceAddress string; ProxyAdminPort int; AvailabilityZone string;
  ControlPlaneAuthPolicy enum.NONE; CustomConfigFile string; StatNameLength int; Concurrency Int32Value;
  ProxyBootstrapTemplatePath string; InterceptionMode enum.REDIRECT; Tracing Tracing; Sds SDS;
  EnvoyAccessLogService RemoteService; EnvoyMetricsService RemoteService; ProxyMetadata {}string; RuntimeValues
  {}string; StatusPort int; ExtraStatTags []string; GatewayTopology Topology; TerminationDrainDuration Duration;
  MeshId string; ReadinessProbe ReadinessProbe; ProxyStatsMatcher ProxyStatsMatcher;
  HoldApplicationUntilProxyStarts BoolValue; CaCertificatesPem []string; Image ProxyImage; PrivateKeyProvider
  PrivateKeyProvider; ProxyHeaders ProxyHeaders; FileFlushInterval Duration; FileFlushMinSizeKb int;
  StatsCompression BoolValue
MeshConfig
  ProxyListenPort int; ProxyInboundListenPort int; ProxyHttpPort int; ConnectTimeout Duration; HboneIdleTimeout
  Duration; ProtocolDetectionTimeout Duration; TcpKeepalive TcpKeepalive; IngressClass string; IngressService
  string; IngressControllerMode enum.UNSPECIFIED; IngressSelector string; EnableTracing bool; AccessLogFile
  string; AccessLogFormat string; AccessLogEncoding enum.TEXT; EnableEnvoyAccessLogService bool;
  DisableEnvoyListenerLog bool; DefaultConfig ProxyConfig; OutboundTrafficPolicy OutboundTrafficPolicy;
  InboundTrafficPolicy InboundTrafficPolicy; ConfigSources []ConfigSource; EnableAutoMtls BoolValue; TrustDomain
  string; TrustDomainAliases []string; CaCertificates []CertificateData; DefaultServiceExportTo []string;
  DefaultVirtualServiceExportTo []string; DefaultDestinationRuleExportTo []string; RootNamespace string;
  LocalityLbSetting LocalityLoadBalancerSetting; DnsRefreshRate Duration; H2UpgradePolicy enum.DO_NOT_UPGRADE;
  InboundClusterStatName string; OutboundClusterStatName string; Certificates []Certificate; ServiceSettings
  []ServiceSettings; ServiceScopeConfigs []ServiceScopeConfigs; EnablePrometheusMerge BoolValue;
  VerifyCertificateAtClient BoolValue; Ca CA; ExtensionProviders []any; DefaultProviders DefaultProviders;
  DiscoverySelectors []LabelSelector; PathNormalization ProxyPathNormalization; DefaultHttpRetryPolicy HTTPRetry;
  MeshMTLS TLSConfig; TlsDefaults TLSConfig
Tracing
  Zipkin| Zipkin; Lightstep| Lightstep; Datadog| Datadog; Stackdriver| Stackdriver; OpenCensusAgent|
  OpenCensusAgent; CustomTags {}CustomTag; MaxPathTagLength int; Sampling float; TlsSettings ClientTLSSettings;
  EnableIstioTags BoolValue
SDS
  Enabled bool; K8SSaJwtPath=k8sSaJwtPath string
RemoteService
  Address string; TlsSettings ClientTLSSettings; TcpKeepalive TcpKeepalive
Topology
  NumTrustedProxies int; ForwardClientCertDetails enum.UNDEFINED; ProxyProtocol ProxyProtocolConfiguration
ReadinessProbe
  InitialDelaySeconds int; TimeoutSeconds int; PeriodSeconds int; SuccessThreshold int; FailureThreshold int;
  HttpGet| HTTPHealthCheckConfig; TcpSocket| TCPHealthCheckConfig; Exec| ExecHealthCheckConfig; Grpc|
  GrpcHealthCheckConfig
ProxyStatsMatcher
  InclusionPrefixes []string; InclusionSuffixes []string; InclusionRegexps []string
ProxyImage
  ImageType string
PrivateKeyProvider
  Cryptomb| CryptoMb; Qat| QAT
ProxyHeaders
  ForwardedClientCert enum.UNDEFINED; SetCurrentClientCertDetails SetCurrentClientCertDetails; RequestId
  RequestId; Server Server; AttemptCount AttemptCount; EnvoyDebugHeaders EnvoyDebugHeaders;
  MetadataExchangeHeaders MetadataExchangeHeaders; PreserveHttp1HeaderCase BoolValue; XForwardedHost
  XForwardedHost; XForwardedPort XForwardedPort
TcpKeepalive
  Probes int; Time Duration; Interval Duration
OutboundTrafficPolicy
  Mode enum.REGISTRY_ONLY
InboundTrafficPolicy
  Mode enum.PASSTHROUGH
ConfigSource
  Address string; TlsSettings ClientTLSSettings; SubscribedResources []enum.SERVICE_REGISTRY
CertificateData
  Pem| string; SpiffeBundleUrl| string; CertSigners []string; TrustDomains []string
LocalityLoadBalancerSetting
  Distribute []Distribute; Failover []Failover; FailoverPriority []string; Enabled BoolValue
Certificate
  SecretName string; DnsNames []string
ServiceSettings
  Settings Settings; Hosts []string
ServiceScopeConfigs
  NamespaceSelector LabelSelector; ServicesSelector LabelSelector; Scope enum.LOCAL
CA
  Address string; TlsSettings ClientTLSSettings; RequestTimeout Duration; IstiodSide bool
DefaultProviders
  Tracing []string; Metrics []string; AccessLogging []string
LabelSelector
  MatchLabels {}string; MatchExpressions []LabelSelectorRequirement
ProxyPathNormalization
  Normalization enum.DEFAULT
HTTPRetry
  Attempts int; PerTryTimeout Duration; RetryOn string; RetryRemoteLocalities BoolValue; RetryIgnorePreviousHosts
  BoolValue; Backoff Duration
TLSConfig
  MinProtocolVersion enum.TLS_AUTO; EcdhCurves []string; CipherSuites []string
Zipkin
  Address string
Lightstep
  Address string; AccessToken string
Datadog
  Address string
Stackdriver
  Debug bool; MaxNumberOfAttributes Int64Value; MaxNumberOfAnnotations Int64Value; MaxNumberOfMessageEvents
  Int64Value
OpenCensusAgent
  Address string; Context []enum.UNSPECIFIED
CustomTag
  Literal| Literal; Environment| Environment; Header| RequestHeader
ClientTLSSettings
  Mode enum.DISABLE; ClientCertificate string; PrivateKey string; CaCertificates string; CredentialName string;
  SubjectAltNames []string; Sni string; InsecureSkipVerify BoolValue; CaCrl string
ProxyProtocolConfiguration
HTTPHealthCheckConfig
  Path string; Port int; Host string; Scheme string; HttpHeaders []HTTPHeader
TCPHealthCheckConfig
  Host string; Port int
ExecHealthCheckConfig
  Command []string
GrpcHealthCheckConfig
  Port int; Service string
CryptoMb
  PollDelay Duration; Fallback BoolValue
QAT
  PollDelay Duration; Fallback BoolValue
SetCurrentClientCertDetails
  Subject BoolValue; Cert BoolValue; Chain BoolValue; Dns BoolValue; Uri BoolValue
RequestId
  Disabled BoolValue
Server
  Disabled BoolValue; Value string
AttemptCount
  Disabled BoolValue
EnvoyDebugHeaders
  Disabled BoolValue
MetadataExchangeHeaders
  Mode enum.UNDEFINED
XForwardedHost
  Enabled BoolValue
XForwardedPort
  Enabled BoolValue
Distribute
  From string; To {}int
Failover
  From string; To string
Settings
  ClusterLocal bool
LabelSelectorRequirement
  Key string; Operator string; Values []string
Literal
  Value string
Environment
  Name string; DefaultValue string
RequestHeader
  Name string; DefaultValue string
HTTPHeader
  Name string; Value string
`;
