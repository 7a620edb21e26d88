/** The switches of istiod's environment that change what is generated. */
import type { EnvValues } from "#lib/env/env-table.ts";
import type { Features } from "#model/features.ts";
import type { FEATURE_ENVIRONMENT } from "./feature-environment.ts";

type FeatureValues = EnvValues<typeof FEATURE_ENVIRONMENT>;

/** Reads them; what flags say is given. */
export function featuresOf(
  env: FeatureValues,
  flags: Pick<Features, "domain" | "clusterId" | "unreadableDeny">,
): Features {
  return {
    ...flags,
    sniffOutbound: env.PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND,
    sniffInbound: env.PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_INBOUND,
    keyFetching: keyFetching(env),
    tlsOnSidecarIngress: env.ENABLE_TLS_ON_SIDECAR_INGRESS,
    mergeSidecarIngress: env.PILOT_ALLOW_SIDECAR_SERVICE_INBOUND_LISTENER_MERGE,
    autoAllocate: env.PILOT_ENABLE_IP_AUTOALLOCATE,
    autoRange4: env.PILOT_IP_AUTOALLOCATE_IPV4_PREFIX,
    autoRange6: env.PILOT_IP_AUTOALLOCATE_IPV6_PREFIX,
    unifiedScope: env.PILOT_UNIFIED_SIDECAR_SCOPE,
    dualStack: env.ISTIO_DUAL_STACK,
    multiclusterHeadless: env.ENABLE_MULTICLUSTER_HEADLESS,
    ipv4BesideIpv6: env.ISTIO_ENABLE_IPV4_OUTBOUND_LISTENER_FOR_IPV6_CLUSTERS,
    quicListeners: env.PILOT_ENABLE_QUIC_LISTENERS,
    traceSampling: env.PILOT_TRACE_SAMPLING,
    compliance: env.COMPLIANCE_POLICY,
    ...httpFeatures(env),
    ...telemetryFeatures(env),
    ...clusterFeatures(env),
    ...gatewayFeatures(env),
    ...registryFeatures(env),
  };
}

function httpFeatures(env: FeatureValues) {
  return {
    http10: env.PILOT_HTTP10,
    continue100: env.ENABLE_100_CONTINUE_HEADERS,
    remoteAddress: env.PILOT_SIDECAR_USE_REMOTE_ADDRESS,
    internalNetworks: env.ENABLE_HCM_INTERNAL_NETWORKS,
    sessionFilter: env.PILOT_ENABLE_PERSISTENT_SESSION_FILTER,
    sessionCookieLabel: env.PILOT_PERSISTENT_SESSION_LABEL,
    sessionHeaderLabel: env.PILOT_PERSISTENT_SESSION_HEADER_LABEL,
    absoluteNames: env.PILOT_ENABLE_ABSOLUTE_FQDN_VHOST_DOMAIN,
    shadowSuffix: !env.DISABLE_SHADOW_HOST_SUFFIX,
    connectionsPerEvent: env.MAX_CONNECTIONS_PER_SOCKET_EVENT_LOOP,
    anyTrustDomain: env.PILOT_SKIP_VALIDATE_TRUST_DOMAIN,
    mongoFilter: env.PILOT_ENABLE_MONGO_FILTER,
    mysqlFilter: env.PILOT_ENABLE_MYSQL_FILTER,
    redisFilter: env.PILOT_ENABLE_REDIS_FILTER,
  };
}

function telemetryFeatures(env: FeatureValues) {
  const clusterLabels = env.PILOT_ENABLE_TELEMETRY_LABEL;
  return {
    clusterLabels,
    endpointLabels: env.PILOT_ENDPOINT_TELEMETRY_LABEL && clusterLabels,
    canonicalExternal: env.LABEL_CANONICAL_SERVICES_FOR_MESH_EXTERNAL_SERVICE_ENTRIES,
    metadataExchange: env.PILOT_ENABLE_METADATA_EXCHANGE,
    exchangeByAlpn: !env.PILOT_DISABLE_MX_ALPN,
    exchangedLabels: [...new Set(env.PILOT_MX_ADDITIONAL_LABELS)].sort(),
    alpnFilter: env.PILOT_ENABLE_ALPN_FILTER,
  };
}

function clusterFeatures(env: FeatureValues) {
  return {
    dnsQueriesPerSocket: env.PILOT_DNS_CARES_UDP_MAX_QUERIES,
    dnsJitterMs: env.PILOT_DNS_JITTER_DURATION,
    trackRemaining: !env.DISABLE_TRACK_REMAINING_CB_METRICS,
    rulesForExternal: env.PREFER_DESTINATIONRULE_TLS_FOR_EXTERNAL_SERVICES,
    edsForHeadless: env.PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES,
    weighLocalities: env.ENABLE_LOCALITY_WEIGHTED_LB_CONFIG,
    separateExports: env.ENABLE_ENHANCED_DESTINATIONRULE_MERGE,
  };
}

function gatewayFeatures(env: FeatureValues) {
  return {
    collapseRoutes: env.PILOT_ENABLE_ROUTE_COLLAPSE_OPTIMIZATION,
    gatewaySelectors: env.ENABLE_SELECTOR_BASED_K8S_GATEWAY_POLICY,
    gatewaysOfNamespace: env.PILOT_SCOPE_GATEWAY_TO_NAMESPACE,
    referencedClusters: env.PILOT_FILTER_GATEWAY_CLUSTER_CONFIG,
  };
}

function registryFeatures(env: FeatureValues) {
  return {
    drainingLabel: env.PILOT_DRAINING_LABEL,
    sendUnhealthy: env.PILOT_SEND_UNHEALTHY_ENDPOINTS,
    ingressNamespace: env.K8S_INGRESS_NS,
    podsByAddress: env.ENABLE_PROXY_FIND_POD_BY_IP,
    entriesSelectPods: env.PILOT_ENABLE_SERVICEENTRY_SELECT_PODS,
    servicesSelectEntries: env.PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES,
    entryHealth: env.PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS,
  };
}

/** Any other text means the same as none, as by istiod. */
function keyFetching(env: FeatureValues): Features["keyFetching"] {
  const mode = env.PILOT_JWT_ENABLE_REMOTE_JWKS;
  if (mode === "envoy") return "envoy";
  return mode === "hybrid" || mode === "true" ? "hybrid" : "control-plane";
}
