/** The switches of istiod's environment that change what is generated. */
import type { EnvReader } from "#lib/env-reader.ts";
import type { Features } from "#model/features.ts";

/** Reads them; what flags say of the cluster is given. */
export function featuresOf(read: EnvReader, place: Pick<Features, "domain" | "clusterId">): Features {
  return {
    ...place,
    sniffOutbound: read.boolean("PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND", true),
    sniffInbound: read.boolean("PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_INBOUND", true),
    keyFetching: keyFetching(read),
    tlsOnSidecarIngress: read.boolean("ENABLE_TLS_ON_SIDECAR_INGRESS", false),
    mergeSidecarIngress: read.boolean("PILOT_ALLOW_SIDECAR_SERVICE_INBOUND_LISTENER_MERGE", false),
    autoAllocate: read.boolean("PILOT_ENABLE_IP_AUTOALLOCATE", true),
    dualStack: read.boolean("ISTIO_DUAL_STACK", false),
    multiclusterHeadless: read.boolean("ENABLE_MULTICLUSTER_HEADLESS", true),
    ipv4BesideIpv6: read.boolean("ISTIO_ENABLE_IPV4_OUTBOUND_LISTENER_FOR_IPV6_CLUSTERS", false),
    quicListeners: read.boolean("PILOT_ENABLE_QUIC_LISTENERS", false),
    traceSampling: Number(read.string("PILOT_TRACE_SAMPLING", "1")),
  };
}

/** Any other text means the same as none, as by istiod. */
function keyFetching(read: EnvReader): Features["keyFetching"] {
  const mode = read.string("PILOT_JWT_ENABLE_REMOTE_JWKS", "false");
  if (mode === "envoy") return "envoy";
  return mode === "hybrid" || mode === "true" ? "hybrid" : "control-plane";
}
