/** The switches of istiod's environment that change what is generated. */
import { parseAddressRange } from "#convert/services/address-range.ts";
import type { EnvReader } from "#lib/env/env-reader.ts";
import { DEFAULT_FEATURES, type Features } from "#model/features.ts";

/** Reads them; what flags say is given. */
export function featuresOf(
  read: EnvReader,
  flags: Pick<Features, "domain" | "clusterId" | "unreadableDeny">,
): Features {
  return {
    ...flags,
    sniffOutbound: read.boolean("PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND", true),
    sniffInbound: read.boolean("PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_INBOUND", true),
    keyFetching: keyFetching(read),
    tlsOnSidecarIngress: read.boolean("ENABLE_TLS_ON_SIDECAR_INGRESS", false),
    mergeSidecarIngress: read.boolean("PILOT_ALLOW_SIDECAR_SERVICE_INBOUND_LISTENER_MERGE", false),
    autoAllocate: read.boolean("PILOT_ENABLE_IP_AUTOALLOCATE", true),
    autoRange4: addressRange(read, "PILOT_IP_AUTOALLOCATE_IPV4_PREFIX", 4),
    autoRange6: addressRange(read, "PILOT_IP_AUTOALLOCATE_IPV6_PREFIX", 6),
    unifiedScope: read.boolean("PILOT_UNIFIED_SIDECAR_SCOPE", true),
    dualStack: read.boolean("ISTIO_DUAL_STACK", false),
    multiclusterHeadless: read.boolean("ENABLE_MULTICLUSTER_HEADLESS", true),
    ipv4BesideIpv6: read.boolean("ISTIO_ENABLE_IPV4_OUTBOUND_LISTENER_FOR_IPV6_CLUSTERS", false),
    quicListeners: read.boolean("PILOT_ENABLE_QUIC_LISTENERS", false),
    traceSampling: read.percent("PILOT_TRACE_SAMPLING", 1),
    compliance: read.choice("COMPLIANCE_POLICY", "", ["", "fips-140-2", "pqc"]),
    ...httpFeatures(read),
    ...telemetryFeatures(read),
    ...clusterFeatures(read),
    ...gatewayFeatures(read),
    ...registryFeatures(read),
  };
}

function httpFeatures(read: EnvReader) {
  return {
    http10: read.boolean("PILOT_HTTP10", false),
    continue100: read.boolean("ENABLE_100_CONTINUE_HEADERS", true),
    remoteAddress: read.boolean("PILOT_SIDECAR_USE_REMOTE_ADDRESS", false),
    internalNetworks: read.boolean("ENABLE_HCM_INTERNAL_NETWORKS", false),
    sessionFilter: read.boolean("PILOT_ENABLE_PERSISTENT_SESSION_FILTER", false),
    sessionCookieLabel: read.string("PILOT_PERSISTENT_SESSION_LABEL", DEFAULT_FEATURES.sessionCookieLabel),
    sessionHeaderLabel: read.string("PILOT_PERSISTENT_SESSION_HEADER_LABEL", DEFAULT_FEATURES.sessionHeaderLabel),
    absoluteNames: read.boolean("PILOT_ENABLE_ABSOLUTE_FQDN_VHOST_DOMAIN", true),
    shadowSuffix: !read.boolean("DISABLE_SHADOW_HOST_SUFFIX", true),
    connectionsPerEvent: read.integer("MAX_CONNECTIONS_PER_SOCKET_EVENT_LOOP", 1),
    anyTrustDomain: read.boolean("PILOT_SKIP_VALIDATE_TRUST_DOMAIN", false),
    mongoFilter: read.boolean("PILOT_ENABLE_MONGO_FILTER", true),
    mysqlFilter: read.boolean("PILOT_ENABLE_MYSQL_FILTER", false),
    redisFilter: read.boolean("PILOT_ENABLE_REDIS_FILTER", false),
  };
}

function telemetryFeatures(read: EnvReader) {
  const clusterLabels = read.boolean("PILOT_ENABLE_TELEMETRY_LABEL", true);
  return {
    clusterLabels,
    endpointLabels: read.boolean("PILOT_ENDPOINT_TELEMETRY_LABEL", true) && clusterLabels,
    canonicalExternal: read.boolean("LABEL_CANONICAL_SERVICES_FOR_MESH_EXTERNAL_SERVICE_ENTRIES", false),
    metadataExchange: read.boolean("PILOT_ENABLE_METADATA_EXCHANGE", true),
    exchangeByAlpn: !read.boolean("PILOT_DISABLE_MX_ALPN", false),
    exchangedLabels: [...new Set(read.list("PILOT_MX_ADDITIONAL_LABELS"))].sort(),
    alpnFilter: read.boolean("PILOT_ENABLE_ALPN_FILTER", true),
  };
}

function clusterFeatures(read: EnvReader) {
  return {
    dnsQueriesPerSocket: read.integer("PILOT_DNS_CARES_UDP_MAX_QUERIES", DEFAULT_FEATURES.dnsQueriesPerSocket),
    dnsJitterMs: read.durationMs("PILOT_DNS_JITTER_DURATION", DEFAULT_FEATURES.dnsJitterMs),
    trackRemaining: !read.boolean("DISABLE_TRACK_REMAINING_CB_METRICS", true),
    rulesForExternal: read.boolean("PREFER_DESTINATIONRULE_TLS_FOR_EXTERNAL_SERVICES", true),
    edsForHeadless: read.boolean("PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES", false),
    weighLocalities: read.boolean("ENABLE_LOCALITY_WEIGHTED_LB_CONFIG", false),
    separateExports: read.boolean("ENABLE_ENHANCED_DESTINATIONRULE_MERGE", true),
  };
}

function gatewayFeatures(read: EnvReader) {
  return {
    collapseRoutes: read.boolean("PILOT_ENABLE_ROUTE_COLLAPSE_OPTIMIZATION", true),
    gatewaySelectors: read.boolean("ENABLE_SELECTOR_BASED_K8S_GATEWAY_POLICY", true),
    gatewaysOfNamespace: read.boolean("PILOT_SCOPE_GATEWAY_TO_NAMESPACE", false),
    referencedClusters: read.boolean("PILOT_FILTER_GATEWAY_CLUSTER_CONFIG", false),
  };
}

function registryFeatures(read: EnvReader) {
  return {
    drainingLabel: read.string("PILOT_DRAINING_LABEL", DEFAULT_FEATURES.drainingLabel),
    sendUnhealthy: read.boolean("PILOT_SEND_UNHEALTHY_ENDPOINTS", false),
    ingressNamespace: read.string("K8S_INGRESS_NS", DEFAULT_FEATURES.ingressNamespace),
    podsByAddress: read.boolean("ENABLE_PROXY_FIND_POD_BY_IP", false),
    entriesSelectPods: read.boolean("PILOT_ENABLE_SERVICEENTRY_SELECT_PODS", true),
    servicesSelectEntries: read.boolean("PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES", true),
    entryHealth: read.boolean("PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS", true),
  };
}

function addressRange(read: EnvReader, name: string, family: 4 | 6): string {
  const fallback = family === 4 ? DEFAULT_FEATURES.autoRange4 : DEFAULT_FEATURES.autoRange6;
  const text = read.string(name, fallback);
  if (parseAddressRange(text)?.family === family) return text;
  read.problems.push(`${name}: must be a range of IPv${family} addresses such as "${fallback}", not "${text}"`);
  return fallback;
}

/** Any other text means the same as none, as by istiod. */
function keyFetching(read: EnvReader): Features["keyFetching"] {
  const mode = read.string("PILOT_JWT_ENABLE_REMOTE_JWKS", "false");
  if (mode === "envoy") return "envoy";
  return mode === "hybrid" || mode === "true" ? "hybrid" : "control-plane";
}
