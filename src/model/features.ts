/** `PILOT_*` switches that change what is generated: part of the snapshot, so that translation has no hidden input. */
export interface Features {
  /** Domain of the cluster, `cluster.local`. */
  readonly domain: string;
  readonly clusterId: string;
  /** PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND */
  readonly sniffOutbound: boolean;
  /** PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_INBOUND */
  readonly sniffInbound: boolean;
}

export const DEFAULT_FEATURES: Features = {
  domain: "cluster.local",
  clusterId: "Kubernetes",
  sniffOutbound: true,
  sniffInbound: true,
};
