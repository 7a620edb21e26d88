/** Limits of connections and requests towards a cluster. */
import { create } from "@bufbuild/protobuf";
import type { ConnectionPool, OutlierDetection, TrafficPolicy } from "#config/kinds/destination-rule/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import {
  type CircuitBreakers,
  type CircuitBreakers_ThresholdsSchema,
  CircuitBreakersSchema,
} from "#gen/envoy/config/cluster/v3/circuit_breaker_pb.ts";
import type { ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import type { OutlierDetectionSchema } from "#gen/envoy/config/cluster/v3/outlier_detection_pb.ts";
import type { TcpKeepaliveSchema } from "#gen/envoy/config/core/v3/address_pb.ts";
import type { ClusterTraits } from "../traits/traits.ts";
import { duration, type Init } from "../wire/encode.ts";

type Cluster = Init<typeof ClusterSchema>;
type Keepalive = MeshConfig["tcpKeepalive"];

/** Envoy's own limits are too low while pods come and go; unlimited means that the application decides. */
const UNLIMITED = 4_294_967_295;

/** What limits are made from. */
export interface LimitsInput {
  readonly pool: ConnectionPool | undefined;
  readonly mesh: MeshConfig;
  readonly traits: Pick<ClusterTraits, "tracksRemaining">;
  readonly budget?: TrafficPolicy["retryBudget"];
}

/** Timeouts, circuit breakers and keep-alive. Zero means unset, as in the API. */
export function connectionLimits({ pool, mesh, traits, budget }: LimitsInput): Cluster {
  const keepalive = keepaliveOf(mesh.tcpKeepalive, pool?.tcp?.tcpKeepalive);
  const isUsual = pool === undefined && budget === undefined && traits.tracksRemaining === undefined;
  return {
    connectTimeout: duration(pool?.tcp?.connectTimeout ?? mesh.connectTimeout),
    circuitBreakers: isUsual ? NO_LIMITS : limits(pool, budget, traits),
    ...(keepalive && { upstreamConnectionOptions: { tcpKeepalive: keepalive } }),
  };
}

function limits(
  pool: ConnectionPool | undefined,
  budget: TrafficPolicy["retryBudget"],
  { tracksRemaining }: LimitsInput["traits"],
): CircuitBreakers {
  const thresholds: Init<typeof CircuitBreakers_ThresholdsSchema> = {
    maxConnections: pool?.tcp?.maxConnections || UNLIMITED,
    maxPendingRequests: pool?.http?.http1MaxPendingRequests || UNLIMITED,
    maxRequests: pool?.http?.http2MaxRequests || UNLIMITED,
    maxRetries: pool?.http?.maxRetries || UNLIMITED,
    ...(tracksRemaining && { trackRemaining: true }),
    ...(budget && {
      retryBudget: {
        budgetPercent: { value: Math.min(Math.max(budget.percent ?? 20, 0), 100) },
        minRetryConcurrency: budget.minRetryConcurrency || 3,
      },
    }),
  };
  return create(CircuitBreakersSchema, { thresholds: [thresholds] });
}

const NO_LIMITS = limits(undefined, undefined, {});

/** The rule's settings replace those of the mesh one by one; an empty one turns keep-alive on with the system's values. */
function keepaliveOf(ofMesh: Keepalive, ofRule: Keepalive): Init<typeof TcpKeepaliveSchema> | undefined {
  if (ofMesh === undefined && ofRule === undefined) return undefined;
  const probes = ofRule?.probes || ofMesh?.probes;
  const time = ofRule?.time ?? ofMesh?.time;
  const interval = ofRule?.interval ?? ofMesh?.interval;
  return {
    ...(probes && { keepaliveProbes: probes }),
    ...(time !== undefined && { keepaliveTime: keepaliveSeconds(time) }),
    ...(interval !== undefined && { keepaliveInterval: keepaliveSeconds(interval) }),
  };
}

/** The kernel refuses longer ones, and with them the connection. */
const LONGEST_KEEPALIVE_S = 32_767;

function keepaliveSeconds(ms: number): number {
  return Math.min(Math.trunc(ms / 1000), LONGEST_KEEPALIVE_S);
}

/** Endpoints that fail are left out for a while. Ejection by success rate, Envoy's default, is off. */
export function outlierDetection(outlier: OutlierDetection): Init<typeof OutlierDetectionSchema> {
  const { consecutive5xxErrors: errors, consecutiveGatewayErrors: gatewayErrors } = outlier;
  return {
    enforcingSuccessRate: 0,
    ...(errors !== undefined && { consecutive5xx: errors, enforcingConsecutive5xx: errors > 0 ? 100 : 0 }),
    ...(gatewayErrors !== undefined && {
      consecutiveGatewayFailure: gatewayErrors,
      enforcingConsecutiveGatewayFailure: gatewayErrors > 0 ? 100 : 0,
    }),
    ...(outlier.interval !== undefined && { interval: duration(outlier.interval) }),
    ...(outlier.baseEjectionTime !== undefined && { baseEjectionTime: duration(outlier.baseEjectionTime) }),
    ...((outlier.maxEjectionPercent ?? 0) > 0 && { maxEjectionPercent: outlier.maxEjectionPercent }),
    ...(outlier.splitExternalLocalOriginErrors === true && localOrigin(outlier)),
  };
}

function localOrigin({
  consecutiveLocalOriginFailures: failures = 0,
}: OutlierDetection): Init<typeof OutlierDetectionSchema> {
  return {
    splitExternalLocalOriginErrors: true,
    enforcingLocalOriginSuccessRate: 0,
    ...(failures > 0 && {
      consecutiveLocalOriginFailure: failures,
      enforcingConsecutiveLocalOriginFailure: 100,
    }),
  };
}
