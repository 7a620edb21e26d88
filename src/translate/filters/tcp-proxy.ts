/** Chains of network filters that pass bytes on. */
import { create, type JsonObject } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import type { DestinationRule } from "#config/kinds/destination-rule/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import { type Filter, FilterSchema } from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import { MongoProxySchema } from "#gen/envoy/extensions/filters/network/mongo_proxy/v3/mongo_proxy_pb.ts";
import { RedisProxySchema } from "#gen/envoy/extensions/filters/network/redis_proxy/v3/redis_proxy_pb.ts";
import { TcpProxySchema } from "#gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.ts";
import type { Protocol } from "#model/service/service.ts";
import { BLACK_HOLE_CLUSTER, virtualHostName } from "../names/names.ts";
import type { TcpTraits } from "../traits/traits.ts";
import { duration, type Init, pack } from "../wire/encode.ts";
import { typedStruct } from "../wire/typed-struct.ts";
import { fittingWeights } from "../wire/weights.ts";
import { accessLogs } from "./access-log.ts";

const MONGO_PROXY = "envoy.filters.network.mongo_proxy";
const MYSQL_PROXY = "envoy.filters.network.mysql_proxy";
const REDIS_PROXY = "envoy.filters.network.redis_proxy";
const REDIS_TIMEOUT_MS = 5_000;

type TcpProxy = Init<typeof TcpProxySchema>;

/** Where connections of a chain go. */
export interface TcpTarget {
  readonly statPrefix: string;
  /** One, or those with a weight. */
  readonly clusters: readonly string[];
  readonly weights: readonly number[];
  /** Its subset, for settings of the rule that differ by subset. */
  readonly subset: string;
  readonly rule: DestinationRule | undefined;
  /** Whether the rule's tunnel is used; unset means that it is. */
  readonly tunnels?: boolean;
  /** Some protocols are also counted by what they carry. */
  readonly protocol: Protocol;
}

/** The network filters that send connections to one or several clusters. */
export function tcpProxy(target: TcpTarget, traits: TcpTraits, mesh: MeshConfig): Filter[] {
  const { protocol } = target;
  const has = (filter: string) => !traits.lacks.includes(filter);
  if (protocol === "Redis" && traits.redisFilter && has(REDIS_PROXY)) return [redisProxy(target)];
  const counts = [
    ...(protocol === "Mongo" && !traits.withoutMongoFilter && has(MONGO_PROXY) ? [mongoProxy(target.statPrefix)] : []),
    ...(protocol === "MySQL" && traits.mysqlFilter && has(MYSQL_PROXY) ? [mysqlProxy(target.statPrefix)] : []),
  ];
  return [...counts, plainProxy(target, traits, mesh)];
}

function mongoProxy(statPrefix: string): Filter {
  return create(FilterSchema, {
    name: MONGO_PROXY,
    configType: { case: "typedConfig", value: pack(MongoProxySchema, { statPrefix }) },
  });
}

/** A type that only some builds of Envoy have, so it is told by name. */
function mysqlProxy(statPrefix: string): Filter {
  const value = typedStruct("envoy.extensions.filters.network.mysql_proxy.v3.MySQLProxy", { stat_prefix: statPrefix });
  return create(FilterSchema, { name: MYSQL_PROXY, configType: { case: "typedConfig", value } });
}

/** Ends the connection itself: each command goes to an endpoint by its key. Of several clusters the first counts. */
function redisProxy({ statPrefix, clusters }: TcpTarget): Filter {
  const config: Init<typeof RedisProxySchema> = {
    statPrefix,
    latencyInMicros: true,
    settings: { opTimeout: duration(REDIS_TIMEOUT_MS) },
    prefixRoutes: { catchAllRoute: { cluster: clusters[0] ?? "" } },
  };
  return create(FilterSchema, {
    name: REDIS_PROXY,
    configType: { case: "typedConfig", value: pack(RedisProxySchema, config) },
  });
}

function plainProxy(target: TcpTarget, traits: TcpTraits, mesh: MeshConfig): Filter {
  const tcp = target.rule?.trafficPolicy?.connectionPool?.tcp;
  const idleTimeoutMs = tcp?.idleTimeout ?? traits.idleTimeoutMs;
  return tcpProxyFilter({
    statPrefix: target.statPrefix,
    clusterSpecifier: clusterSpecifier(target),
    accessLog: accessLogs(mesh, "tcp"),
    ...(idleTimeoutMs !== undefined && { idleTimeout: duration(idleTimeoutMs) }),
    ...(tcp?.maxConnectionDuration !== undefined && {
      maxDownstreamConnectionDuration: duration(tcp.maxConnectionDuration),
    }),
    ...tunneled(target),
    ...(hashesBySource(target) && { hashPolicy: [{ policySpecifier: { case: "sourceIp", value: {} } }] }),
  });
}

/** Ends connections that must go nowhere; they are not logged. */
export function blackHole(): Filter {
  return tcpProxyFilter({
    statPrefix: BLACK_HOLE_CLUSTER,
    clusterSpecifier: { case: "cluster", value: BLACK_HOLE_CLUSTER },
  });
}

function tcpProxyFilter(config: TcpProxy): Filter {
  return create(FilterSchema, {
    name: "envoy.filters.network.tcp_proxy",
    configType: { case: "typedConfig", value: pack(TcpProxySchema, config) },
  });
}

function clusterSpecifier({ clusters, weights }: TcpTarget): TcpProxy["clusterSpecifier"] & {} {
  if (weights.length === 0) return { case: "cluster", value: clusters[0] ?? "" };
  const fitting = fittingWeights(weights);
  const weighted = clusters.map((name, i) => ({ name, weight: fitting[i] ?? 0 }));
  return { case: "weightedClusters", value: { clusters: weighted } };
}

/** Through a proxy that connects on to the target; a subset's settings are its own, and not inherited. */
function tunneled({ rule, subset, tunnels = true }: TcpTarget): TcpProxy {
  const policy = subset === "" ? rule : rule?.subsets?.find(({ name }) => name === subset);
  const tunnel = policy?.trafficPolicy?.tunnel;
  if (tunnel === undefined || !tunnels) return {};
  const { targetHost, targetPort, protocol } = tunnel;
  return { tunnelingConfig: { hostname: virtualHostName(targetHost, targetPort), usePost: protocol === "POST" } };
}

/** A subset's own way to balance replaces that of the rule. */
function hashesBySource({ rule, subset }: TcpTarget): boolean {
  const ofSubset = rule?.subsets?.find(({ name }) => name === subset)?.trafficPolicy?.loadBalancer;
  const balancer = ofSubset ?? rule?.trafficPolicy?.loadBalancer;
  return balancer?.consistentHash?.useSourceIp === true;
}

/** Tells the server over TCP who the client's workload is; only Istio's build of Envoy has it. */
export function peerExchange(traits: TcpTraits): Filter[] {
  if (!traits.metadataExchange) return [];
  const { name, typedConfig: value } = exchangeFilter(traits);
  return [create(FilterSchema, { name, configType: { case: "typedConfig", value } })];
}

/** Name and configuration of that filter, which clusters have too. */
export function exchangeFilter(traits: Pick<TcpTraits, "exchangedLabels">): { name: string; typedConfig: Any } {
  const config = { enable_discovery: true, protocol: "istio-peer-exchange", ...exchangedLabels(traits) };
  return {
    name: "istio.metadata_exchange",
    typedConfig: typedStruct("envoy.tcp.metadataexchange.config.MetadataExchange", config),
  };
}

/** Labels of the workload that are told beside the usual ones. */
export function exchangedLabels({ exchangedLabels: labels }: Pick<TcpTraits, "exchangedLabels">): JsonObject {
  return labels === undefined ? {} : { additional_labels: [...labels] };
}
