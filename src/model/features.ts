/** `PILOT_*` switches that change what is generated: part of the snapshot, so that translation has no hidden input. */
export interface Features {
  /** Domain of the cluster, `cluster.local`. */
  readonly domain: string;
  readonly clusterId: string;
  /** PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND */
  readonly sniffOutbound: boolean;
  /** PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_INBOUND */
  readonly sniffInbound: boolean;
  /**
   * PILOT_JWT_ENABLE_REMOTE_JWKS: who fetches the keys of token issuers. `hybrid`: Envoy, where the server is a service of
   * the mesh, else the control plane.
   */
  readonly keyFetching: "control-plane" | "hybrid" | "envoy";
  /** ENABLE_TLS_ON_SIDECAR_INGRESS: TLS settings of a Sidecar's ingress listeners take effect. */
  readonly tlsOnSidecarIngress: boolean;
  /** PILOT_ALLOW_SIDECAR_SERVICE_INBOUND_LISTENER_MERGE: ports of services stay beside a Sidecar's ingress listeners. */
  readonly mergeSidecarIngress: boolean;
  /** ISTIO_DUAL_STACK: services and workloads are used with their addresses of both families. */
  readonly dualStack: boolean;
  /** ISTIO_ENABLE_IPV4_OUTBOUND_LISTENER_FOR_IPV6_CLUSTERS: proxies with IPv6 alone capture and look up IPv4 too. */
  readonly ipv4BesideIpv6: boolean;
  /** PILOT_ENABLE_IP_AUTOALLOCATE: hosts without address get one, else only proxies that ask for it use one by hash. */
  readonly autoAllocate: boolean;
  /** PILOT_IP_AUTOALLOCATE_IPV4_PREFIX: where such addresses are taken from. */
  readonly autoRange4: string;
  /** PILOT_IP_AUTOALLOCATE_IPV6_PREFIX */
  readonly autoRange6: string;
  /** PILOT_UNIFIED_SIDECAR_SCOPE: sidecars prefer Kubernetes services to entries of other namespaces for the same host. */
  readonly unifiedScope: boolean;
  /** ENABLE_MULTICLUSTER_HEADLESS: names of headless services stand for their endpoints in all clusters. */
  readonly multiclusterHeadless: boolean;
  /** PILOT_TRACE_SAMPLING: percent of new traces that are kept where neither mesh nor proxy say. */
  readonly traceSampling: number;
  /** PILOT_ENABLE_QUIC_LISTENERS: gateways speak HTTP/3 beside HTTPS, where their service has the port for UDP too. */
  readonly quicListeners: boolean;
  /** PILOT_HTTP10: all proxies take HTTP/1.0, and tell it from other protocols. */
  readonly http10: boolean;
  /** ENABLE_100_CONTINUE_HEADERS: `100 Continue` is passed on from the server, not answered by the proxy. */
  readonly continue100: boolean;
  /** PILOT_SIDECAR_USE_REMOTE_ADDRESS: sidecars take the address of the connection for that of the client. */
  readonly remoteAddress: boolean;
  /** ENABLE_HCM_INTERNAL_NETWORKS: ranges of the mesh's networks are internal addresses, whose headers are believed. */
  readonly internalNetworks: boolean;
  /** PILOT_ENABLE_PERSISTENT_SESSION_FILTER: clients stay with one endpoint of services that have a label for it. */
  readonly sessionFilter: boolean;
  /** PILOT_PERSISTENT_SESSION_LABEL; empty for none. */
  readonly sessionCookieLabel: string;
  /** PILOT_PERSISTENT_SESSION_HEADER_LABEL; empty for none. */
  readonly sessionHeaderLabel: string;
  /** PILOT_DRAINING_LABEL: workloads that only finish what they have begun; empty for none. */
  readonly drainingLabel: string;
  /** PILOT_SEND_UNHEALTHY_ENDPOINTS: proxies are told of endpoints that are not ready, for all services. */
  readonly sendUnhealthy: boolean;
  /** PILOT_ENABLE_TELEMETRY_LABEL: clusters tell metrics which services they are. */
  readonly clusterLabels: boolean;
  /** PILOT_ENDPOINT_TELEMETRY_LABEL, with the one before: endpoints tell metrics which workloads they are. */
  readonly endpointLabels: boolean;
  /** LABEL_CANONICAL_SERVICES_FOR_MESH_EXTERNAL_SERVICE_ENTRIES: endpoints outside the mesh are called after their entry. */
  readonly canonicalExternal: boolean;
  /** PILOT_ENABLE_METADATA_EXCHANGE: proxies of Istio's build tell each other who they are. */
  readonly metadataExchange: boolean;
  /** PILOT_DISABLE_MX_ALPN, negated: TCP connections of the mesh say so by a protocol of their own. */
  readonly exchangeByAlpn: boolean;
  /** PILOT_MX_ADDITIONAL_LABELS: further labels they tell, sorted. */
  readonly exchangedLabels: readonly string[];
  /** PILOT_ENABLE_ALPN_FILTER */
  readonly alpnFilter: boolean;
  /** PILOT_ENABLE_MONGO_FILTER */
  readonly mongoFilter: boolean;
  /** PILOT_ENABLE_MYSQL_FILTER */
  readonly mysqlFilter: boolean;
  /** PILOT_ENABLE_REDIS_FILTER */
  readonly redisFilter: boolean;
  /** MAX_CONNECTIONS_PER_SOCKET_EVENT_LOOP; 0 for any number. */
  readonly connectionsPerEvent: number;
  /** PILOT_SKIP_VALIDATE_TRUST_DOMAIN: workloads take certificates of any trust domain that the roots sign. */
  readonly anyTrustDomain: boolean;
  /** COMPLIANCE_POLICY: what TLS of proxies is limited to. */
  readonly compliance: "" | "fips-140-2" | "pqc";
  /** PILOT_DNS_CARES_UDP_MAX_QUERIES; 0 for any number. */
  readonly dnsQueriesPerSocket: number;
  /** PILOT_DNS_JITTER_DURATION */
  readonly dnsJitterMs: number;
  /** DISABLE_TRACK_REMAINING_CB_METRICS, negated: clusters count what circuit breakers still allow. */
  readonly trackRemaining: boolean;
  /** PREFER_DESTINATIONRULE_TLS_FOR_EXTERNAL_SERVICES: certificates in files of a proxy are for servers of the mesh only. */
  readonly rulesForExternal: boolean;
  /** PILOT_ENABLE_EDS_FOR_HEADLESS_SERVICES: proxies balance among the pods of headless services. */
  readonly edsForHeadless: boolean;
  /** ENABLE_LOCALITY_WEIGHTED_LB_CONFIG: localities count by their weights in all clusters. */
  readonly weighLocalities: boolean;
  /** PILOT_ENABLE_ABSOLUTE_FQDN_VHOST_DOMAIN: hosts may be called with a dot at their end. */
  readonly absoluteNames: boolean;
  /** DISABLE_SHADOW_HOST_SUFFIX, negated: hosts of mirrored requests end with `-shadow`. */
  readonly shadowSuffix: boolean;
  /** PILOT_ENABLE_ROUTE_COLLAPSE_OPTIMIZATION: hosts of a gateway with the same routes are one virtual host. */
  readonly collapseRoutes: boolean;
  /** ENABLE_SELECTOR_BASED_K8S_GATEWAY_POLICY: labels select proxies of the Gateway API too, else only `targetRefs` do. */
  readonly gatewaySelectors: boolean;
  /** PILOT_SCOPE_GATEWAY_TO_NAMESPACE: Gateways select proxies of their own namespace only. */
  readonly gatewaysOfNamespace: boolean;
  /** PILOT_FILTER_GATEWAY_CLUSTER_CONFIG: gateways get the clusters that their routes lead to, and no others. */
  readonly referencedClusters: boolean;
  /** K8S_INGRESS_NS: where the gateway is that Ingresses go through. */
  readonly ingressNamespace: string;
  /** ENABLE_PROXY_FIND_POD_BY_IP: a proxy that is not called as a pod is that of the pod with its address. */
  readonly podsByAddress: boolean;
  /** PILOT_ENABLE_SERVICEENTRY_SELECT_PODS */
  readonly entriesSelectPods: boolean;
  /** PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES */
  readonly servicesSelectEntries: boolean;
  /** PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS: entries that are known not to be healthy do not count. */
  readonly entryHealth: boolean;
  /** ENABLE_ENHANCED_DESTINATIONRULE_MERGE: rules of one host that are for different namespaces are not joined. */
  readonly separateExports: boolean;
  /** --on-unreadable-policy=deny: security objects that cannot be read deny what they could have denied. */
  readonly unreadableDeny: boolean;
}

export const DEFAULT_FEATURES: Features = {
  domain: "cluster.local",
  clusterId: "Kubernetes",
  sniffOutbound: true,
  sniffInbound: true,
  keyFetching: "control-plane",
  tlsOnSidecarIngress: false,
  mergeSidecarIngress: false,
  dualStack: false,
  ipv4BesideIpv6: false,
  autoAllocate: true,
  autoRange4: "240.240.0.0/16",
  autoRange6: "2001:2::/48",
  unifiedScope: true,
  multiclusterHeadless: true,
  traceSampling: 1,
  quicListeners: false,
  http10: false,
  continue100: true,
  remoteAddress: false,
  internalNetworks: false,
  sessionFilter: false,
  sessionCookieLabel: "istio.io/persistent-session",
  sessionHeaderLabel: "istio.io/persistent-session-header",
  drainingLabel: "istio.io/draining",
  sendUnhealthy: false,
  clusterLabels: true,
  endpointLabels: true,
  canonicalExternal: false,
  metadataExchange: true,
  exchangeByAlpn: true,
  exchangedLabels: [],
  alpnFilter: true,
  mongoFilter: true,
  mysqlFilter: false,
  redisFilter: false,
  connectionsPerEvent: 1,
  anyTrustDomain: false,
  compliance: "",
  dnsQueriesPerSocket: 100,
  dnsJitterMs: 100,
  trackRemaining: false,
  rulesForExternal: true,
  edsForHeadless: false,
  weighLocalities: false,
  absoluteNames: true,
  shadowSuffix: false,
  collapseRoutes: true,
  gatewaySelectors: true,
  gatewaysOfNamespace: false,
  referencedClusters: false,
  ingressNamespace: "istio-system",
  podsByAddress: false,
  entriesSelectPods: true,
  servicesSelectEntries: true,
  entryHealth: true,
  separateExports: true,
  unreadableDeny: true,
};
