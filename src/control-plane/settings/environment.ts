/**
 * Every environment variable that the control plane reads, under istiod's names, with type, default and meaning. This is the
 * only place that names them; `node scripts/environment-pages.ts` writes `docs/reference/discovery-environment.md` from it.
 */
import { isGoInteger } from "#lib/env/env-kinds.ts";
import {
  caseless,
  choice,
  duration,
  type EnvTable,
  type EnvValues,
  flag,
  lifetime,
  list,
  optionalDuration,
  optionalFlag,
  optionalText,
  optionalWholeNumber,
  ranges,
  type Variable,
  wholeNumber,
  word,
} from "#lib/env/env-table.ts";
import type { KeyKind } from "#lib/pki/signing-key.ts";
import { FEATURE_ENVIRONMENT, FEATURE_SECTIONS } from "./feature-environment.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const MB = 1024 * 1024;

const PLACE = {
  POD_NAME: word("", "Name of this control plane's pod."),
  POD_NAMESPACE: word("istio-system", "Default of `--namespace`."),
  CLUSTER_ID: word("Kubernetes", "Default of `--clusterID`."),
  REVISION: word("", "Revision of this control plane; objects of another one are ignored."),
  PLATFORM: word("", "`openshift` for injection as OpenShift needs it."),
} satisfies EnvTable;

const STREAMS = {
  XDS_AUTH: flag(
    true,
    "`false`: xDS streams need no proof of identity, not even over TLS, and the namespaces that proxies claim are trusted. Certificate requests always need a proof.",
  ),
  XDS_AUTH_PLAINTEXT: flag(false, "xDS streams in plain text need a proof of identity too."),
  PILOT_ENABLE_XDS_IDENTITY_CHECK: flag(
    true,
    "A proxy must belong to the namespace and service account that its caller proved; one whose caller proved nothing receives [what is public](pilot-discovery.md#streams-without-proof). `false`: what proxies claim is trusted.",
  ),
  TRUSTED_GATEWAY_CIDR: strictRanges(
    "Ranges of gateways whose `x-forwarded-client-cert` is trusted, in addition to loopback. The last of several hops counts.",
  ),
  ISTIO_GPRC_MAXRECVMSGSIZE: wholeNumber(4 * MB, "Largest request in bytes."),
  ISTIO_GPRC_MAXSTREAMS: optionalWholeNumber(
    "Streams of one connection at a time, 1,000 by default; istiod allows 100,000. A connection whose peer has not sent a valid first request gets at most 100.",
  ),
  PILOT_MAX_REQUESTS_PER_SECOND: rate(
    "New streams per second of each port, counted after authentication. Further ones wait for up to a second, then fail with RESOURCE_EXHAUSTED. 0 for no limit; istiod has one that depends on the number of processors.",
  ),
  GRPC_KEEPALIVE_INTERVAL: word("30s", "Default of `--keepaliveInterval`."),
  GRPC_KEEPALIVE_TIMEOUT: word("10s", "Default of `--keepaliveTimeout`."),
  PILOT_DEBOUNCE_AFTER: optionalDuration(
    "Quiet time before any change is pushed. Without it, endpoints go out at once, and configuration after 5 ms, or after 100 ms in a flood or while a reference is unresolved. istiod waits 100 ms for everything.",
  ),
  PILOT_DEBOUNCE_MAX: optionalDuration(
    "Longest time that a change waits for quiet, 10 s by default. Endpoints wait at most 1 s unless PILOT_DEBOUNCE_AFTER is set.",
  ),
  PILOT_ENABLE_EDS_DEBOUNCE: optionalFlag(
    "`true`: changes of endpoints wait for quiet like configuration. `false`: they never wait.",
  ),
  PILOT_ENVOY_FILTER_STATS: flag(false, "`pilot_envoy_filter_status` reports which EnvoyFilters have an effect."),
} satisfies EnvTable;

const CERTIFICATES = {
  ENABLE_CA_SERVER: flag(
    true,
    "`false`: no CA, and no roots for namespaces in Kubernetes. Other leader duties continue.",
  ),
  ROOT_CA_DIR: word("./etc/cacerts", "Folder with the key and the certificates of the CA."),
  CA_KEY_PASSPHRASE_FILE: word(
    "",
    "Its first line is the passphrase of `ca-key.pem`. New keys are written encrypted (PKCS#8, AES-256). Not in Istio.",
  ),
  DEFAULT_WORKLOAD_CERT_TTL: lifetime(DAY_MS, "Lifetime of a certificate if the request names none."),
  MAX_WORKLOAD_CERT_TTL: lifetime(90 * DAY_MS, "Longest lifetime of a certificate."),
  CITADEL_SELF_SIGNED_CA_CERT_TTL: lifetime(3650 * DAY_MS, "Lifetime of a new root."),
  CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE: rootKey(),
  CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE: percentile(
    20,
    "Last part of a self-signed root's life, in percent, in which it is replaced.",
  ),
  CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL: duration(
    HOUR_MS,
    "Time between checks of the root; `0s` never replaces it.",
  ),
  CA_REQUESTS_PER_SECOND_PER_IDENTITY: wholeNumber(
    100,
    "Certificates that one identity may request per second, five times as many in a burst; 0 for no limit. Not in Istio.",
  ),
  CA_TRUSTED_NODE_ACCOUNTS: list(
    "`namespace/account` of node agents. They may request certificates for the workloads on the node of their pod, and for no others.",
  ),
  ISTIO_MULTIROOT_MESH: flag(
    false,
    "Workloads also trust `caCertificates` of the mesh config. A bundle of a `spiffeBundleUrl` is fetched over TLS every 30 minutes and kept while its server is unreachable. The control plane itself does not trust these roots.",
  ),
  PILOT_ENABLE_CA_CRL: flag(
    true,
    "In Kubernetes, every namespace gets ConfigMap `istio-ca-crl` with `ca-crl.pem` of ROOT_CA_DIR. The file must hold a list for every CA from the signing one to its root. An invalid file fails the start; later it leaves the previous one in use.",
  ),
  ISTIOD_CUSTOM_HOST: list("Further names of the control plane's own certificate."),
} satisfies EnvTable;

const CALLERS = {
  JWT_RULE: word(
    "",
    "JSON with `issuer`; `jwks` or `jwks_uri` (default: OpenID discovery); `audiences` (default: `istio-ca`). Without it, only certificates of the mesh prove an identity. Keys are fetched again after ten minutes; the last ones stay while their server is unreachable.",
  ),
  TOKEN_AUDIENCES: word("istio-ca", "Audiences of service-account tokens that are accepted, separated by commas."),
  PILOT_JWT_PUB_KEY_REFRESH_INTERVAL: lifetime(
    20 * MINUTE_MS,
    "Time between fetches of keys. After a failure the next fetch comes sooner, and the last good keys stay.",
  ),
  PILOT_JWKS_ALLOW_LOCAL: flag(
    false,
    "Keys may come from any address, also from loopback, link-local, metadata and private addresses. Not in Istio.",
  ),
  ALLOWED_CIDRS_IN_JWKS_URIS: strictRanges(
    "Ranges of private addresses that keys may come from, such as `10.0.0.0/8`. Services of the cluster that a `jwksUri` names as `NAME.NAMESPACE.svc`, with or without the cluster's domain, need no range. NAT64 (`64:ff9b::/96`), 6to4, Teredo and IPv4-compatible addresses count as private. Not in Istio, where keys may come from any private address.",
  ),
  BLOCKED_CIDRS_IN_JWKS_URIS: strictRanges(
    "Ranges from which no keys are fetched, also after redirects and whatever else is allowed.",
  ),
  JWKS_RESOLVER_INSECURE_SKIP_VERIFY: flag(
    false,
    "Do not check the certificates of key servers, and follow their redirects from `https` to `http`. Certificates in `/cacerts/extra.pem` are trusted in any case.",
  ),
} satisfies EnvTable;

const PAGES = {
  ENABLE_DEBUG_ON_HTTP: flag(true, "`false`: no `/debug`."),
  ENABLE_DEBUG_ENDPOINT_AUTH: flag(
    true,
    "`false`: every caller with an identity sees all of `/debug`. Callers beyond loopback always need an identity.",
  ),
  DEBUG_ENDPOINT_AUTH_ALLOWED_NAMESPACES: list(
    "Namespaces whose callers see all of `/debug`, like those of the root namespace.",
  ),
  METRICS_LOCALHOST_ACCESS_ONLY: flag(false, "`/metrics` answers only programs on the same machine."),
} satisfies EnvTable;

const CLUSTER = {
  ISTIO_WATCH_NAMESPACE: word(
    "",
    "The only namespace whose objects are read and that receives ConfigMaps. The mesh config and further clusters always come from the control plane's namespace.",
  ),
  PILOT_IGNORE_RESOURCES: list(
    "Istio kinds that are not read from API servers, such as `gateways.networking.istio.io` or `*.security.istio.io`.",
  ),
  PILOT_INCLUDE_RESOURCES: list("Kinds that are read although PILOT_IGNORE_RESOURCES names them."),
  SHARED_MESH_CONFIG: word(
    "",
    "A ConfigMap that fills in what the mesh config leaves out. Its `meshNetworks` take precedence.",
  ),
  ENABLE_LEADER_ELECTION: flag(true, "`false`: the only replica leads without an election."),
  EXTERNAL_ISTIOD: flag(
    false,
    "[Further clusters](kubernetes.md#further-clusters) that name this control plane receive roots and webhooks from it.",
  ),
  PILOT_REMOTE_CLUSTER_TIMEOUT: duration(
    30 * SECOND_MS,
    "Maximum wait for a further cluster at startup; `0` waits indefinitely.",
  ),
  PILOT_INSECURE_MULTICLUSTER_KUBECONFIG_OPTIONS: list(
    "Unsafe parts of kubeconfigs that further clusters may use: `exec`, `tokenFile`, `clientKey`, `clientCertificate`.",
  ),
  PILOT_ENABLE_CROSS_CLUSTER_WORKLOAD_ENTRY: flag(
    true,
    "WorkloadEntries of [further clusters](kubernetes.md#further-clusters) belong to the mesh.",
  ),
  RESOLVE_HOSTNAME_GATEWAYS: flag(
    true,
    "Look up gateways between networks that have a host name, again when their TTL (30 s to 1 h) ends. Their last addresses stay while no name server answers. `false`: leave them out.",
  ),
  PILOT_CA_CERT_CONFIGMAP: word("istio-ca-root-cert", "Name of the ConfigMap with the roots in every namespace."),
  PILOT_CRL_CONFIGMAP: word("istio-ca-crl", "Name of the ConfigMap with revocation lists in every namespace."),
  PILOT_ENABLE_STATUS: flag(false, "Write [conditions](kubernetes.md#status-of-objects) into the status of objects."),
  PILOT_ENABLE_ANALYSIS: flag(false, "Write the messages of the analysis into the status of objects."),
  PILOT_ANALYSIS_INTERVAL: duration(10 * SECOND_MS, "Time between two analyses, at least `1s`."),
  PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION: flag(true, "Workloads may register themselves."),
  PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: duration(
    10 * SECOND_MS,
    "Time between the disconnection of a registered workload and the removal of its entry.",
  ),
  ISTIO_WORKLOAD_ENTRY_VALIDATE_IDENTITY: flag(true, "Only the workload of an entry may register it."),
} satisfies EnvTable;

const WEBHOOKS = {
  INJECT_ENABLED: flag(true, "`false`: `/inject` is not served, and its webhooks are left alone."),
  ENABLE_NATIVE_SIDECARS: caseless(
    choice(["auto", "true", "false"], "Inject the proxy as a native sidecar; `auto` if all nodes support it."),
  ),
  INJECTION_WEBHOOK_CONFIG_NAME: optionalText(
    "Empty: leave the configurations of injection webhooks alone. Labels tell which of them are ours, as with istiod.",
  ),
  VALIDATION_WEBHOOK_CONFIG_NAME: optionalText("Empty: leave the configurations of validation webhooks alone."),
} satisfies EnvTable;

/** The rows in groups, as the reference page shows them. */
export const DISCOVERY_ENVIRONMENT_SECTIONS: readonly (readonly [title: string, rows: EnvTable])[] = [
  ["Where it runs", PLACE],
  ["Streams and pushes", STREAMS],
  ["Certificates", CERTIFICATES],
  ["Callers and keys", CALLERS],
  ["Pages", PAGES],
  ["Kubernetes", CLUSTER],
  ["Webhooks", WEBHOOKS],
  ...FEATURE_SECTIONS,
];

/** All rows. */
export const DISCOVERY_ENVIRONMENT = {
  ...PLACE,
  ...STREAMS,
  ...CERTIFICATES,
  ...CALLERS,
  ...PAGES,
  ...CLUSTER,
  ...WEBHOOKS,
  ...FEATURE_ENVIRONMENT,
} satisfies EnvTable;

/** What the environment says. */
export type DiscoveryValues = EnvValues<typeof DISCOVERY_ENVIRONMENT>;

/** Ranges of addresses; the control plane does not start with an invalid one, since it would protect less than was meant. */
function strictRanges(meaning: string): Variable<readonly string[]> {
  return { ...ranges(meaning), strict: () => true };
}

function rate(meaning: string): Variable<number> {
  const parse = (text: string) => (Number.isFinite(Number(text)) && Number(text) >= 0 ? Number(text) : undefined);
  return { ...wholeNumber(0, meaning), wanted: "a number of streams per second", parse, strict: () => true };
}

function percentile(fallback: number, meaning: string): Variable<number> {
  const { parse, ...row } = wholeNumber(fallback, meaning);
  const upTo100 = (text: string) => (Number(parse(text)) <= 100 ? parse(text) : undefined);
  return { ...row, wanted: "a whole number up to 100", parse: upTo100, strict: isGoInteger };
}

function rootKey(): Variable<KeyKind> {
  const parse = (text: string): KeyKind | undefined => {
    const rsaBits = Number(text);
    return Number.isInteger(rsaBits) && rsaBits >= 2048 && rsaBits <= 8192 ? { rsaBits } : undefined;
  };
  return {
    ...word("", "Number of bits of a new root's RSA key; without it the key is ECDSA P-256."),
    type: "number",
    fallback: "P-256",
    wanted: "a number of bits from 2048 to 8192",
    parse,
    strict: () => true,
  };
}
