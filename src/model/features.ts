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
  /** ENABLE_MULTICLUSTER_HEADLESS: names of headless services stand for their endpoints in all clusters. */
  readonly multiclusterHeadless: boolean;
  /** PILOT_TRACE_SAMPLING: percent of new traces that are kept where neither mesh nor proxy say. */
  readonly traceSampling: number;
  /** PILOT_ENABLE_QUIC_LISTENERS: gateways speak HTTP/3 beside HTTPS, where their service has the port for UDP too. */
  readonly quicListeners: boolean;
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
  multiclusterHeadless: true,
  traceSampling: 1,
  quicListeners: false,
};
