/** The variables that change what proxies receive, under istiod's names. */
import { parseAddressRange } from "#convert/services/address-range.ts";
import {
  choice,
  duration,
  type EnvTable,
  flag,
  list,
  percent,
  type Variable,
  wholeNumber,
  word,
} from "#lib/env/env-table.ts";
import { DEFAULT_FEATURES as DEFAULT } from "#model/features.ts";

const PROTOCOLS = {
  PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND: flag(true, "Detect the protocol of outbound ports that declare none."),
  PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_INBOUND: flag(true, "Detect the protocol of inbound ports that declare none."),
  PILOT_HTTP10: flag(false, "Accept HTTP/1.0, and detect it."),
  ENABLE_100_CONTINUE_HEADERS: flag(true, "Pass on `100 Continue` from the server."),
  PILOT_ENABLE_QUIC_LISTENERS: flag(
    false,
    "Gateways serve HTTP/3 beside HTTPS if their service has the same port for UDP.",
  ),
  PILOT_ENABLE_MONGO_FILTER: flag(true, "Use Envoy's filter for MongoDB."),
  PILOT_ENABLE_MYSQL_FILTER: flag(false, "Use Envoy's filter for MySQL."),
  PILOT_ENABLE_REDIS_FILTER: flag(false, "Use Envoy's filter for Redis, which routes commands by their keys."),
} satisfies EnvTable;

const LISTENERS = {
  ENABLE_TLS_ON_SIDECAR_INGRESS: flag(
    false,
    "Honor `tls` of a Sidecar's ingress listeners on ports without mutual TLS of the mesh.",
  ),
  PILOT_ALLOW_SIDECAR_SERVICE_INBOUND_LISTENER_MERGE: flag(
    false,
    "Keep the ports of services beside the ingress listeners of a Sidecar, which otherwise replace them.",
  ),
  PILOT_SIDECAR_USE_REMOTE_ADDRESS: flag(false, "Sidecars use the address of the connection as the client's address."),
  ENABLE_HCM_INTERNAL_NETWORKS: flag(
    false,
    "Sidecars treat the ranges of MeshNetworks as internal addresses. Gateways always do.",
  ),
  MAX_CONNECTIONS_PER_SOCKET_EVENT_LOOP: wholeNumber(1, "Connections that a listener accepts at once; 0 for no limit."),
  ISTIO_DUAL_STACK: flag(false, "Proxies with addresses of both families listen on, look up and call from both."),
  ISTIO_ENABLE_IPV4_OUTBOUND_LISTENER_FOR_IPV6_CLUSTERS: flag(
    false,
    "Proxies with IPv6 addresses alone also capture connections to IPv4 addresses, and look up both.",
  ),
  COMPLIANCE_POLICY: choice(["", "fips-140-2", "pqc"], "Limits what TLS of proxies may use."),
} satisfies EnvTable;

const ROUTES = {
  PILOT_ENABLE_ABSOLUTE_FQDN_VHOST_DOMAIN: flag(true, "Hosts may be called with a trailing dot."),
  DISABLE_SHADOW_HOST_SUFFIX: flag(true, "`false`: the host of a mirrored request ends with `-shadow`."),
  PILOT_ENABLE_ROUTE_COLLAPSE_OPTIMIZATION: flag(true, "Hosts of a gateway with the same routes share a virtual host."),
  PILOT_ENABLE_PERSISTENT_SESSION_FILTER: flag(
    false,
    "Clients stay with one endpoint of a service that has one of the next two labels.",
  ),
  PILOT_PERSISTENT_SESSION_LABEL: word(
    DEFAULT.sessionCookieLabel,
    "Label whose value `cookie[:path]` names the cookie of a session.",
  ),
  PILOT_PERSISTENT_SESSION_HEADER_LABEL: word(
    DEFAULT.sessionHeaderLabel,
    "Label whose value names the header of a session.",
  ),
} satisfies EnvTable;

const CLUSTERS = {
  PILOT_SKIP_VALIDATE_TRUST_DOMAIN: flag(
    false,
    "Workloads accept certificates of every trust domain that their roots sign.",
  ),
  PILOT_DNS_CARES_UDP_MAX_QUERIES: wholeNumber(
    DEFAULT.dnsQueriesPerSocket,
    "Queries that Envoy sends over one UDP socket.",
  ),
  PILOT_DNS_JITTER_DURATION: duration(DEFAULT.dnsJitterMs, "Largest random delay of Envoy's DNS lookups."),
  DISABLE_TRACK_REMAINING_CB_METRICS: flag(true, "`false`: clusters report what circuit breakers still allow."),
  PREFER_DESTINATIONRULE_TLS_FOR_EXTERNAL_SERVICES: flag(
    true,
    "Certificate files of a proxy (`TLS_CLIENT_*`) do not apply to servers outside the mesh.",
  ),
  PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES: flag(false, "Proxies balance among the pods of headless services."),
  ENABLE_LOCALITY_WEIGHTED_LB_CONFIG: flag(false, "All clusters weigh their localities."),
  ENABLE_ENHANCED_DESTINATIONRULE_MERGE: flag(
    true,
    "Rules of one host that are exported to different namespaces are not merged.",
  ),
} satisfies EnvTable;

const TELEMETRY = {
  PILOT_TRACE_SAMPLING: percent(1, "Percentage of new traces to keep if neither mesh nor proxy sets one."),
  PILOT_ENABLE_TELEMETRY_LABEL: flag(true, "Clusters carry the names of their services for metrics."),
  PILOT_ENDPOINT_TELEMETRY_LABEL: flag(true, "Endpoints carry the names of their workloads for metrics."),
  LABEL_CANONICAL_SERVICES_FOR_MESH_EXTERNAL_SERVICE_ENTRIES: flag(
    false,
    "Endpoints outside the mesh are named after their ServiceEntry.",
  ),
  PILOT_ENABLE_METADATA_EXCHANGE: flag(true, "Use the metadata exchange filter of Istio's Envoy."),
  PILOT_DISABLE_MX_ALPN: flag(false, "Exchange metadata without ALPN."),
  PILOT_MX_ADDITIONAL_LABELS: list("Further labels that proxies exchange."),
  PILOT_ENABLE_ALPN_FILTER: flag(true, "Use the ALPN filter of Istio's Envoy."),
} satisfies EnvTable;

const GATEWAYS = {
  ENABLE_SELECTOR_BASED_K8S_GATEWAY_POLICY: flag(
    true,
    "`false`: proxies with the label `gateway.networking.k8s.io/gateway-name` take policies and EnvoyFilters by `targetRefs` alone.",
  ),
  PILOT_SCOPE_GATEWAY_TO_NAMESPACE: flag(false, "A Gateway selects only proxies of its own namespace."),
  PILOT_FILTER_GATEWAY_CLUSTER_CONFIG: flag(false, "Gateways receive only the clusters that their routes lead to."),
  K8S_INGRESS_NS: word(DEFAULT.ingressNamespace, "Namespace of the gateway that serves Ingresses."),
} satisfies EnvTable;

const SERVICES = {
  PILOT_JWT_ENABLE_REMOTE_JWKS: word(
    "false",
    "Who fetches the keys of a `jwksUri`: `false` or `istiod` the control plane; `true` or `hybrid` Envoy if the server is a service of the mesh; `envoy` always Envoy. OpenID discovery is always the control plane's.",
  ),
  PILOT_UNIFIED_SIDECAR_SCOPE: flag(
    true,
    "`false`: of several services with one host in other namespaces, a sidecar takes whichever comes first.",
  ),
  ENABLE_MULTICLUSTER_HEADLESS: flag(
    true,
    "Names of headless services stand for endpoints in all clusters, not only in the proxy's.",
  ),
  PILOT_ENABLE_IP_AUTOALLOCATE: flag(true, "Hosts without an address get one from the next two ranges."),
  PILOT_IP_AUTOALLOCATE_IPV4_PREFIX: addressRange(4, DEFAULT.autoRange4),
  PILOT_IP_AUTOALLOCATE_IPV6_PREFIX: addressRange(6, DEFAULT.autoRange6),
  PILOT_DRAINING_LABEL: word(DEFAULT.drainingLabel, "Workloads with this label receive no new requests."),
  PILOT_SEND_UNHEALTHY_ENDPOINTS: flag(
    false,
    "Proxies also receive endpoints that are not ready, and do not use them.",
  ),
  ENABLE_PROXY_FIND_POD_BY_IP: flag(
    false,
    "A proxy that is not named like a pod of its namespace belongs to the ready pod with its address.",
  ),
  PILOT_ENABLE_SERVICEENTRY_SELECT_PODS: flag(true, "ServiceEntries select pods."),
  PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES: flag(true, "Services of Kubernetes select WorkloadEntries."),
  PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS: flag(true, "Unhealthy WorkloadEntries receive no requests."),
} satisfies EnvTable;

/** The rows in groups, as the reference page shows them. */
export const FEATURE_SECTIONS: readonly (readonly [title: string, rows: EnvTable])[] = [
  ["Protocols", PROTOCOLS],
  ["Listeners", LISTENERS],
  ["Routes", ROUTES],
  ["Clusters", CLUSTERS],
  ["Services and workloads", SERVICES],
  ["Gateways", GATEWAYS],
  ["Telemetry", TELEMETRY],
];

/** All rows. */
export const FEATURE_ENVIRONMENT = {
  ...PROTOCOLS,
  ...LISTENERS,
  ...ROUTES,
  ...CLUSTERS,
  ...TELEMETRY,
  ...GATEWAYS,
  ...SERVICES,
} satisfies EnvTable;

function addressRange(family: 4 | 6, fallback: string): Variable<string> {
  return {
    ...word(fallback, `Range of [automatic IPv${family} addresses](services.md#addresses-for-hosts-without-one).`),
    wanted: `a range of IPv${family} addresses such as "${fallback}"`,
    parse: (text) => (parseAddressRange(text)?.family === family ? text : undefined),
    strict: () => true,
  };
}
