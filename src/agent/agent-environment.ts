/**
 * Every environment variable that the agent reads, under Istio's names, with type, default and meaning. This is the only
 * place that names them; `docs/reference/agent-environment.md` is made from it by `node scripts/environment-pages.ts`.
 */
import { wholeNumberTo } from "#lib/env/env-kinds.ts";
import {
  caseless,
  choice,
  duration,
  type EnvTable,
  flag,
  lifetime,
  list,
  optionalFlag,
  optionalText,
  optionalWholeNumber,
  port,
  preference,
  prefixed,
  ranges,
  ratio,
  text,
  wholeNumber,
} from "#lib/env/env-table.ts";

const MB = 1024 * 1024;
/** As far as the control plane can read numbers and durations of ProxyConfig. */
const INT32 = wholeNumberTo(2 ** 31 - 1);
const DURATION_SECONDS = wholeNumberTo(9_223_372_036);

const WORKLOAD = {
  INSTANCE_IP: text("", "Address that identifies this instance. The addresses of its interfaces come after it."),
  POD_NAME: text("", "Name of the pod; with POD_NAMESPACE it is the name of the node."),
  POD_NAMESPACE: text("", "Namespace of the pod."),
  SERVICE_ACCOUNT: text("", "Service account of the pod, the last part of its identity."),
  HOST_IP: text("", "Address of the machine, put in place of `$(HOST_IP)` in addresses and in the bootstrap override."),
  ISTIO_META_CLUSTER_ID: text("", "Cluster of the workload, sent with each call to control plane and CA."),
  ISTIO_META_: prefixed("Node metadata: the rest of the name is the key. `ISTIO_META_CLUSTER_ID` sets `CLUSTER_ID`."),
  ISTIO_METAJSON_: prefixed(
    "Node metadata as a JSON object, whose keys are added. `ISTIO_METAJSON_LABELS` also gives the labels.",
  ),
} satisfies EnvTable;

const PROXY_CONFIG = {
  PROXY_CONFIG: text("", "ProxyConfig in YAML or JSON, on top of `defaultConfig` of the mesh file."),
  ISTIO_CPU_LIMIT: wholeNumber(0, "Worker threads of Envoy where ProxyConfig has no `concurrency`.", INT32),
  TERMINATION_DRAIN_DURATION_SECONDS: optionalWholeNumber(
    "Of older installations: replaces `terminationDrainDuration` of ProxyConfig.",
    DURATION_SECONDS,
  ),
  PROXY_CONFIG_XDS_AGENT: flag(false, "Take changes of ProxyConfig from the control plane while running."),
} satisfies EnvTable;

const PLATFORM = {
  CLOUD_PLATFORM: caseless(
    preference(
      ["", "gcp", "aws", "azure", "none"],
      "Cloud that the workload runs in, whose metadata server is asked for its place; empty to find out.",
    ),
  ),
  GCP_METADATA: text("", "`PROJECT_ID|PROJECT_NUMBER|CLUSTER_NAME|CLUSTER_ZONE`, in place of asking."),
  GCP_ZONE: text("", "Zone, with GCP_METADATA."),
  GCP_QUOTA_PROJECT: text("", "Project that pays for calls, with GCP_METADATA."),
  GCE_METADATA_HOST: text(
    "",
    "Host and port of Google Cloud's metadata server; with it, the platform is Google Cloud.",
  ),
  GCP_COMPUTE_URL: text("https://compute.googleapis.com", "Google's Compute API, which knows the labels of a machine."),
  AWS_EC2_METADATA_SERVICE_ENDPOINT: text("", "URL of the metadata server of AWS; empty for its usual addresses."),
  AZURE_METADATA_HOST: text("http://169.254.169.254", "URL of the metadata server of Azure."),
  KUBERNETES_SERVICE_HOST: text("", "Set by Kubernetes: the workload runs in a pod."),
} satisfies EnvTable;

const ENVOY = {
  ENVOY_STATUS_PORT: port(15021, "Port of Envoy that answers readiness probes; 0 for any that is free."),
  ENVOY_PROMETHEUS_PORT: port(15090, "Port of Envoy that gives its own metrics; 0 for any that is free."),
  ENVOY_STATUS_PORT_ENABLE_PROXY_PROTOCOL: flag(false, "Accept PROXY protocol on ENVOY_STATUS_PORT."),
  ENVOY_SKIP_DEPRECATED_LOGS: flag(true, "Start Envoy with `--skip-deprecated-logs`."),
  PEER_METADATA_DISCOVERY: optionalFlag(
    "Learn the metadata of peers from the control plane (Istio's Envoy); unset follows ISTIO_META_ENABLE_HBONE.",
  ),
  EXIT_ON_ZERO_ACTIVE_CONNECTIONS: flag(false, "While draining, end as soon as no connection is left."),
  MINIMUM_DRAIN_DURATION: duration(5_000, "With EXIT_ON_ZERO_ACTIVE_CONNECTIONS: time before connections are counted."),
  ISTIO_ENVOY_ENABLE_CORE_DUMP: flag(false, "Let Envoy write core dumps."),
  ENVOY_HOT_RESTART: flag(
    false,
    "Start a changed Envoy or bootstrap beside the running one, which hands over its sockets; SIGHUP asks for it.",
  ),
  ISTIO_DUAL_STACK: flag(false, "Listen on both address families where the instance has both."),
  COMPLIANCE_POLICY: choice(["", "fips-140-2", "pqc"], "Restricts TLS of all parts."),
  HTTP_STRIP_FRAGMENT_FROM_PATH_UNSAFE_IF_DISABLED: flag(true, "Remove `#fragment` from request paths."),
  METRICS_LOCALHOST_ACCESS_ONLY: flag(
    false,
    "Give the agent's metrics to loopback only; in `proxyMetadata` of ProxyConfig it does so for ENVOY_PROMETHEUS_PORT.",
  ),
  ISTIO_BOOTSTRAP: text("", "Go template to render in place of the built-in bootstrap."),
  ISTIO_BOOTSTRAP_OVERRIDE: text("", "File with bootstrap YAML that Envoy lays over its bootstrap."),
  GRPC_XDS_BOOTSTRAP: text(
    "etc/istio/proxy/grpc-bootstrap.json",
    "Where to write the bootstrap of gRPC clients; empty for none.",
  ),
  DISABLE_ENVOY: flag(false, "Run without Envoy: certificates, xDS proxy and status for proxyless workloads."),
} satisfies EnvTable;

/** OpenSSL reads them itself, so they are of the whole process: where none is set, the program sets what it finds. */
export const MACHINE_TRUST = {
  SSL_CERT_FILE: text(
    "",
    "What the machine trusts, for `SYSTEM` and for servers elsewhere; empty to look in the usual places. Counts with Node's `--use-openssl-ca`, as in `bin/pilot-agent` and in the image.",
  ),
  SSL_CERT_DIR: text("", "The same as a folder of certificates under their hashes."),
} satisfies EnvTable;

const CONTROL_PLANE = {
  ...MACHINE_TRUST,
  XDS_ROOT_CA: text("", "Roots to expect of the control plane: `SYSTEM` or a file."),
  XDS_AUTH_PROVIDER: text("", "Provider of credentials for the control plane, such as `gcp`."),
  XDS_HEADER_: prefixed(
    "Header sent with each stream to the control plane: the rest of the name. One that gRPC cannot send ends the agent.",
  ),
  ISTIOD_SAN: text("", "Name to expect in the control plane's certificate, in place of the host of its address."),
  PILOT_CERT_PROVIDER: text(
    "istiod",
    "Who signed the control plane: istiod, kubernetes, custom, none or `k8s.io/NAME`.",
  ),
  HTTPS_PROXY: text(
    "",
    "Proxy for control plane, CA and HTTPS servers of Wasm modules: a URL, or `host:port`. `https_proxy` is the same.",
  ),
  https_proxy: text("", "What holds without HTTPS_PROXY."),
  HTTP_PROXY: text("", "Proxy for HTTP servers of Wasm modules. `http_proxy` is the same."),
  http_proxy: text("", "What holds without HTTP_PROXY."),
  NO_PROXY: text(
    "",
    "Who is reached directly: hosts (with all below them), addresses, networks, `*`, with commas. Loopback always is.",
  ),
  no_proxy: text("", "What holds without NO_PROXY."),
  ISTIO_DELTA_XDS: flag(true, "Let Envoy open delta streams."),
  ISTIO_GPRC_MAXRECVMSGSIZE: wholeNumber(4 * MB, "Largest message that gRPC accepts from Envoy, in bytes."),
  ISTIO_GPRC_MAXSTREAMS: wholeNumber(100_000, "Streams that Envoy may open at the same time."),
  GRPC_KEEPALIVE_INTERVAL: lifetime(30_000, "Time between signs of life on connections to the control plane."),
  GRPC_KEEPALIVE_TIMEOUT: lifetime(10_000, "Time to wait for an answer to them."),
  PROXY_XDS_DEBUG_VIA_AGENT: flag(true, "Serve the control plane's debug pages on loopback."),
  PROXY_XDS_DEBUG_VIA_AGENT_PORT: port(15004, "Port of these pages; 0 for any that is free."),
} satisfies EnvTable;

const CERTIFICATES = {
  CA_PROVIDER: text("Citadel", "Protocol of the CA: Citadel (istiod), GoogleCA, GoogleCAS, GkeWorkloadCertificate."),
  CA_ADDR: text("", "Address of the CA; empty for `discoveryAddress`."),
  CA_ROOT_CA: text("", "Roots to expect of the CA: `SYSTEM` or a file."),
  CA_HEADER_: prefixed(
    "Header sent with each certificate request: the rest of the name. One that gRPC cannot send ends the agent.",
  ),
  TRUST_DOMAIN: text("cluster.local", "SPIFFE trust domain of the workload."),
  SECRET_TTL: lifetime(86_400_000, "Lifetime to ask for."),
  SECRET_GRACE_PERIOD_RATIO: ratio(0.5, "Share of the lifetime that is left when a new certificate is fetched."),
  SECRET_GRACE_PERIOD_RATIO_JITTER: ratio(0.01, "How far that share may be off, by chance."),
  INITIAL_BACKOFF_MSEC: wholeNumber(
    0,
    "The first certificate is requested after a random time below this many milliseconds, so that workloads that start together spread out.",
    INT32,
  ),
  WORKLOAD_RSA_KEY_SIZE: wholeNumber(2048, "Bits of RSA keys, from 2048 to 16384."),
  PKCS8_KEY: flag(false, "Write private keys as PKCS#8."),
  ECC_SIGNATURE_ALGORITHM: choice(["", "ECDSA"], "Makes ECDSA keys; empty for RSA."),
  ECC_CURVE: preference(["P256", "P384"], "Curve of ECDSA keys."),
  FILE_MOUNTED_CERTS: flag(false, "Take certificates from files of ISTIO_META_TLS_* alone; call no CA."),
  FILE_DEBOUNCE_DURATION: duration(100, "Quiet time before a changed certificate file is read."),
  OUTPUT_CERTS: text("", "Folder to write key and certificate to; empty for none."),
  PROV_CERT: text(
    "",
    "Folder with the certificate of a virtual machine, shown to control plane and CA; before there is one, and when it has expired, the token alone is.",
  ),
  WORKLOAD_IDENTITY_SOCKET_FILE: text(
    "socket",
    "Name of the SDS socket in `./var/run/secrets/workload-spiffe-uds`; another name is that of a foreign server.",
  ),
  ISTIO_META_CERT_SIGNER: text("", "Signer that the CA is to use."),
  JWT_POLICY: text("third-party-jwt", "Kind of token; `first-party-jwt` is treated alike."),
  CREDENTIAL_FETCHER_TYPE: text("JWT", "Where tokens come from: JWT (a file) or GoogleComputeEngine."),
  CREDENTIAL_IDENTITY_PROVIDER: text("GoogleComputeEngine", "Who issued tokens of the credential fetcher."),
  PILOT_ENABLE_CA_CRL: flag(true, "Let Envoy use `/var/run/secrets/istio/crl/ca-crl.pem` where it exists."),
  GKE_CLUSTER_URL: text("", "Issuer of the tokens of a GKE cluster; empty to make it of what the platform says."),
  SECURE_TOKEN_ENDPOINT: text(
    "https://sts.googleapis.com/v1/token",
    "URL that exchanges the workload's token for a federated one.",
  ),
  ACCESS_TOKEN_ENDPOINT: text(
    "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/service-%s@gcp-sa-meshdataplane.iam.gserviceaccount.com:generateAccessToken",
    "URL that exchanges a federated token for an access token; `%s` is the project's number.",
  ),
  GOOGLE_CAS_ENDPOINT: text("privateca.googleapis.com:443", "Address of Google's Certificate Authority Service."),
} satisfies EnvTable;

const DNS = {
  ISTIO_META_DNS_CAPTURE: flag(false, "Serve DNS to the application, whose queries are redirected here."),
  ISTIO_META_ENABLE_DNS_SERVER: flag(false, "Serve DNS at a gateway."),
  DNS_PROXY_ADDR: text("localhost:15053", "Address of the DNS server."),
  DNS_FORWARD_PARALLEL: flag(false, "Ask all upstream servers at the same time."),
  DNS_FORWARD_CACHE: flag(true, "Keep the answers of upstream servers as long as they are valid."),
} satisfies EnvTable;

const WASM = {
  ISTIO_AGENT_ENABLE_WASM_REMOTE_LOAD_CONVERSION: flag(true, "Fetch remote Wasm modules and give Envoy local files."),
  WASM_INSECURE_REGISTRIES: list(
    "Registries and servers that may have any certificate, speak plain text to clients of `oci://`, and be anywhere; `*` for all, but not anywhere.",
  ),
  WASM_MODULE_EXPIRY: lifetime(86_400_000, "Time after which an unused module is removed."),
  WASM_PURGE_INTERVAL: lifetime(3_600_000, "Time between looks for such modules."),
  WASM_HTTP_REQUEST_TIMEOUT: lifetime(15_000, "Time for one attempt to fetch a module."),
  WASM_HTTP_REQUEST_MAX_RETRIES: wholeNumber(5, "Attempts to fetch a module over HTTP."),
  WASM_ALLOW_LOCAL_SERVERS: flag(
    false,
    "Fetch modules also from local and private addresses. Hosts of WASM_INSECURE_REGISTRIES need it not.",
  ),
  ALLOWED_CIDRS_IN_WASM_FETCH: ranges(
    "Ranges of private addresses that modules may be fetched from. Services of the cluster (`NAME.NAMESPACE.svc...`) need it not.",
  ),
  DOCKER_CONFIG: text(
    "",
    "Folder with `config.json`, whose credentials images without a pull secret are fetched with.",
  ),
  HOME: text("", "Where `.docker` is without DOCKER_CONFIG."),
} satisfies EnvTable;

const STATUS = {
  ISTIO_KUBE_APP_PROBERS: text("", "Probes of the application as JSON; written by injection."),
  ISTIO_PROMETHEUS_ANNOTATIONS: optionalText("Where the application gives metrics, as JSON; written by injection."),
  REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION: flag(
    false,
    "Probe the application on localhost instead of the pod's address.",
  ),
  ISTIO_ENABLE_HTTP2_PROBING: flag(true, "Offer HTTP/2 to applications that are probed over HTTPS."),
  ENABLE_PROBE_KEEPALIVE_CONNECTIONS: flag(false, "Keep connections to the application open between probes."),
} satisfies EnvTable;

/** Set by older installations. What they asked for always holds, or is no longer needed. */
const RETIRED = {
  PROXY_XDS_VIA_AGENT: flag(true, "Envoy always reaches the control plane through the agent."),
  ENABLE_INGRESS_GATEWAY_SDS: flag(false, "Gateways always get their secrets over xDS."),
  CALL_CREDENTIALS: flag(false, "The control plane always gets a token."),
  STALED_CONNECTION_RECYCLE_RUN_INTERVAL: duration(300_000, "Dead connections are closed at once."),
  SECRET_ROTATION_CHECK_INTERVAL: duration(
    300_000,
    "Certificates are rotated at their time, not by looking at intervals.",
  ),
  DNS_AGENT: text("", "See ISTIO_META_DNS_CAPTURE."),
  CANONICAL_SERVICE: text("", "The label `service.istio.io/canonical-name` says it."),
  CANONICAL_REVISION: text("", "The label `service.istio.io/canonical-revision` says it."),
  NODE_NAME: text("", "ISTIO_META_NODE_NAME goes into node metadata."),
} satisfies EnvTable;

/** The rows in groups, as the reference page shows them. */
export const AGENT_ENVIRONMENT_SECTIONS: readonly (readonly [title: string, rows: EnvTable])[] = [
  ["Workload", WORKLOAD],
  ["Proxy configuration", PROXY_CONFIG],
  ["Platform", PLATFORM],
  ["Envoy and its bootstrap", ENVOY],
  ["Control plane", CONTROL_PLANE],
  ["Certificates and tokens", CERTIFICATES],
  ["DNS", DNS],
  ["Wasm modules", WASM],
  ["Status port and probes", STATUS],
  ["Accepted without effect", RETIRED],
];

/** All rows. */
export const AGENT_ENVIRONMENT = {
  ...WORKLOAD,
  ...PROXY_CONFIG,
  ...PLATFORM,
  ...ENVOY,
  ...CONTROL_PLANE,
  ...CERTIFICATES,
  ...DNS,
  ...WASM,
  ...STATUS,
  ...RETIRED,
} satisfies EnvTable;
