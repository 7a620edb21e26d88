/** Clusters of the workload's own ports, as its proxy sees them. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { ConnectionPool, DestinationRule } from "#config/kinds/destination-rule/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { Cluster_DiscoveryType, Cluster_LbPolicy, ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import type { Service, ServicePort } from "#model/service/service.ts";
import { configOrigin, serviceMetadata } from "../names/metadata.ts";
import { inboundCluster as inboundClusterName, statPrefix } from "../names/names.ts";
import { statName } from "../names/stat-name.ts";
import { effectivePolicy } from "../scope/traffic-policy.ts";
import { socketAddress } from "../traits/address.ts";
import type { ClusterTraits } from "../traits/traits.ts";
import { bytesOf, duration, type Init } from "../wire/encode.ts";
import { connectionLimits } from "./connection-pool.ts";
import { anyPort, inboundSource } from "./fixed.ts";
import { httpOptions, preservesCase, upstreamProtocol } from "./http-options.ts";

/** Everything one inbound cluster is made from. */
export interface InboundClusterInput {
  /** The port the application listens on. */
  readonly targetPort: number;
  /** The service port that decides the protocol: that of the oldest service. */
  readonly port: ServicePort;
  /** All services with an endpoint on this port, oldest first; the first one's rule applies. */
  readonly services: readonly Service[];
  /** Where connections go: an address, or `unix://PATH`; empty for the address that was called. */
  readonly endpoint: string;
  readonly endpointPort: number;
  /** Limits of the Sidecar, in place of those of the rule. */
  readonly pool: ConnectionPool | undefined;
  readonly rule: ConfigObject<DestinationRule> | undefined;
  readonly traits: ClusterTraits;
  readonly mesh: MeshConfig;
}

/** Envoy forgets endpoints of the original destination after a while; this is as long as it can be told not to. */
const LONGEST_MS = 9_223_372_035_000;

/** Canonical bytes of the cluster. Limits on connections apply on both sides: else the server's would undercut the client's. */
export function inboundCluster(input: InboundClusterInput): Uint8Array {
  const { targetPort, port, services, rule, traits, mesh } = input;
  const name = inboundClusterName(targetPort);
  const policy = effectivePolicy(rule?.spec, port.port);
  const pool = input.pool ?? policy.connectionPool;
  const protocol = upstreamProtocol({ protocol: port.protocol, pool, direction: "inbound", traits, mesh });
  const [service] = services;
  return bytesOf(ClusterSchema, {
    name,
    ...destination(input),
    ...connectionLimits({ pool, mesh, traits, budget: policy.retryBudget }),
    commonLbConfig: {},
    ...httpOptions({ protocol, pool, preserveHeaderCase: preservesCase(port.protocol, traits), upstream: undefined }),
    ...metadata(input),
    altStatName: statPrefix(
      service === undefined
        ? name
        : statName(mesh.inboundClusterStatName, { service, port, subset: "", targetPort, fallback: name }),
    ),
  });
}

/** Connections of the proxy to itself would be captured again, but for those from this address. */
function destination({ targetPort, endpoint, endpointPort, traits }: InboundClusterInput): Init<typeof ClusterSchema> {
  const source = {
    upstreamBindConfig: {
      sourceAddress: anyPort(inboundSource(traits.ipMode)),
      ...(traits.dualStack && { extraSourceAddresses: [{ address: anyPort("::6") }] }),
    },
  };
  if (endpoint === "") {
    return {
      clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.ORIGINAL_DST },
      lbPolicy: Cluster_LbPolicy.CLUSTER_PROVIDED,
      cleanupInterval: duration(LONGEST_MS),
      ...source,
    };
  }
  const value = { address: socketAddress(endpoint, endpointPort) };
  return {
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STATIC },
    loadAssignment: {
      clusterName: inboundClusterName(targetPort),
      endpoints: [{ lbEndpoints: [{ hostIdentifier: { case: "endpoint", value } }] }],
    },
    ...(!isLoopback(endpoint) && source),
  };
}

function isLoopback(endpoint: string): boolean {
  return endpoint === "127.0.0.1" || endpoint === "::1";
}

function metadata({ services, rule, traits }: InboundClusterInput): Init<typeof ClusterSchema> {
  if (services[0] === undefined || services[0].meshExternal) return {};
  const istio: JsonObject = {
    ...(!traits.withoutServices && { services: services.map(serviceMetadata) }),
    ...(rule?.spec.trafficPolicy && { config: configOrigin(rule) }),
  };
  return Object.keys(istio).length === 0 ? {} : { metadata: { filterMetadata: { istio } } };
}
