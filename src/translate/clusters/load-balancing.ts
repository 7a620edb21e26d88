/** How a cluster chooses among its endpoints. */
import type { ConsistentHash, LoadBalancer } from "#config/kinds/destination-rule/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import {
  type Cluster_CommonLbConfigSchema,
  type Cluster_SlowStartConfigSchema,
  type ClusterSchema,
  Cluster_LbPolicy as LbPolicy,
} from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import type { Service } from "#model/service/service.ts";
import { type EffectivePolicy, failsOver, localitySettings, type Preference } from "../scope/traffic-policy.ts";
import type { ClusterTraits } from "../traits/traits.ts";
import { duration, type Init } from "../wire/encode.ts";

type Balancing = Pick<Init<typeof ClusterSchema>, "lbPolicy" | "lbConfig">;

/** The policy and its settings. Fewest active requests where nobody says. */
export function loadBalancing(balancer: LoadBalancer | undefined): Balancing {
  if (balancer?.consistentHash !== undefined) return hashBalancing(balancer.consistentHash);
  const slowStart = slowStartOf(balancer);
  switch (balancer?.simple) {
    case "RANDOM":
      return { lbPolicy: LbPolicy.RANDOM };
    case "ROUND_ROBIN":
      return {
        lbPolicy: LbPolicy.ROUND_ROBIN,
        ...(slowStart && { lbConfig: { case: "roundRobinLbConfig", value: { slowStartConfig: slowStart } } }),
      };
    default:
      return {
        lbPolicy: LbPolicy.LEAST_REQUEST,
        ...(slowStart && { lbConfig: { case: "leastRequestLbConfig", value: { slowStartConfig: slowStart } } }),
      };
  }
}

/** New endpoints get their full share of requests only after a while. */
function slowStartOf(balancer: LoadBalancer | undefined): Init<typeof Cluster_SlowStartConfigSchema> | undefined {
  const { warmup, warmupDurationSecs } = balancer ?? {};
  if (warmup !== undefined) {
    return {
      slowStartWindow: duration(warmup.duration),
      aggression: { defaultValue: warmup.aggression ?? 1, runtimeKey: "(" },
      minWeightPercent: { value: warmup.minimumPercent ?? 10 },
    };
  }
  return warmupDurationSecs === undefined ? undefined : { slowStartWindow: duration(warmupDurationSecs) };
}

function hashBalancing({ maglev, ringHash, minimumRingSize }: ConsistentHash): Balancing {
  if (maglev !== undefined) {
    const tableSize = BigInt(maglev.tableSize ?? 0);
    return {
      lbPolicy: LbPolicy.MAGLEV,
      ...(isTableSize(Number(tableSize)) && { lbConfig: { case: "maglevLbConfig", value: { tableSize } } }),
    };
  }
  const wanted = BigInt((ringHash === undefined ? minimumRingSize : ringHash.minimumRingSize) ?? 0);
  // Without the newer field Istio writes Envoy's own default down.
  const size = wanted > 0n || ringHash !== undefined ? smaller(wanted, LARGEST_RING) : 1024n;
  return {
    lbPolicy: LbPolicy.RING_HASH,
    ...(size > 0n && { lbConfig: { case: "ringHashLbConfig", value: { minimumRingSize: size } } }),
  };
}

/** Envoy refuses larger ones. */
const LARGEST_RING = 8_388_608n;
const LARGEST_TABLE = 5_000_011;

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

/** Envoy refuses tables whose size is no prime; such a wish is left aside for Envoy's own size. */
function isTableSize(size: number): boolean {
  if (size < 2 || size > LARGEST_TABLE) return false;
  for (let factor = 2; factor * factor <= size; factor++) if (size % factor === 0) return false;
  return true;
}

/** Settings of all balancing policies. With outlier detection, all endpoints may be ejected unless the rule says otherwise. */
export function commonBalancing(
  policy: EffectivePolicy,
  service: Preference & Pick<Service, "offersUnready">,
  { mesh, traits }: { readonly mesh: MeshConfig; readonly traits: Pick<ClusterTraits, "weighsLocalities"> },
): Init<typeof Cluster_CommonLbConfigSchema> {
  const outlier = policy.outlierDetection;
  // Endpoints that are not ready are sent with the others, and must get nothing however many they are.
  const knowsUnready = service.trafficDistribution !== undefined || service.offersUnready === true;
  const minHealth = knowsUnready ? 0 : (outlier?.minHealthPercent ?? 0);
  return {
    ...((outlier !== undefined || knowsUnready) && minHealth >= 0 && { healthyPanicThreshold: { value: minHealth } }),
    ...((traits.weighsLocalities || weighsLocalities(policy, mesh, service)) && {
      localityConfigSpecifier: { case: "localityWeightedLbConfig", value: {} },
    }),
  };
}

function weighsLocalities(policy: EffectivePolicy, mesh: MeshConfig, service: Preference): boolean {
  const settings = localitySettings(policy, mesh, service);
  if (settings?.distribute !== undefined) return true;
  const isOrdered = settings?.failover !== undefined || settings?.failoverPriority !== undefined;
  return isOrdered && failsOver(policy, service);
}
