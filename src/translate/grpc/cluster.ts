/** Clusters as gRPC takes them: endpoints by EDS, and of a traffic policy what gRPC can do. */

import type { DestinationRule } from "#config/kinds/destination-rule/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import {
  ClusterSchema,
  Cluster_DiscoveryType as DiscoveryType,
  Cluster_LbPolicy as LbPolicy,
} from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { loadBalancing } from "../clusters/load-balancing.ts";
import { statPrefix } from "../names/names.ts";
import { type EffectivePolicy, effectivePolicy } from "../scope/traffic-policy.ts";
import type { Init } from "../wire/encode.ts";
import { bytesOf } from "../wire/encode.ts";
import { upstreamSocket } from "./tls.ts";

/** What a cluster depends on. */
export interface GrpcClusterInput {
  readonly name: string;
  readonly port: number;
  readonly subset: string;
  readonly rule: ConfigObject<DestinationRule> | undefined;
  /** Who the servers may be. */
  readonly identities: readonly string[];
}

/** Canonical bytes of a cluster. */
export function grpcCluster({ name, port, subset, rule, identities }: GrpcClusterInput): Uint8Array {
  const policy = effectivePolicy(rule?.spec, port, subset === "" ? undefined : subset);
  const maxRequests = policy.connectionPool?.http?.http2MaxRequests ?? 0;
  return bytesOf(ClusterSchema, {
    name,
    altStatName: statPrefix(name),
    clusterDiscoveryType: { case: "type", value: DiscoveryType.EDS },
    edsClusterConfig: { serviceName: name, edsConfig: { configSourceSpecifier: { case: "ads", value: {} } } },
    ...balancing(policy),
    ...(maxRequests > 0 && { circuitBreakers: { thresholds: [{ maxRequests }] } }),
    // Nothing tells whether the server takes mutual TLS, so it has to be asked for.
    ...(policy.tls?.mode === "ISTIO_MUTUAL" && { transportSocket: upstreamSocket(identities) }),
  });
}

/** Round robin, which gRPC does by itself, where it does not know the policy. */
function balancing({ loadBalancer }: EffectivePolicy): Pick<Init<typeof ClusterSchema>, "lbPolicy" | "lbConfig"> {
  if (loadBalancer?.consistentHash !== undefined) return loadBalancing(loadBalancer);
  return loadBalancer?.simple === "LEAST_REQUEST" ? { lbPolicy: LbPolicy.LEAST_REQUEST } : {};
}
