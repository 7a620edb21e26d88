/** Clusters that every proxy has. */
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import { Cluster_DiscoveryType, Cluster_LbPolicy, ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { exchangeFilter } from "../filters/tcp-proxy.ts";
import { BLACK_HOLE_CLUSTER, INBOUND_PASSTHROUGH_CLUSTER, PASSTHROUGH_CLUSTER, statPrefix } from "../names/names.ts";
import { CREDENTIAL_CLUSTER } from "../tls/secrets.ts";
import type { ClusterTraits, IpMode } from "../traits/traits.ts";
import { bytesOf, duration, type Init } from "../wire/encode.ts";
import { connectionLimits } from "./connection-pool.ts";
import { httpOptions, passthroughHttpOptions } from "./http-options.ts";

type Cluster = Init<typeof ClusterSchema>;

/** What they depend on. */
export interface FixedClusterInput {
  readonly traits: ClusterTraits;
  readonly mesh: MeshConfig;
}

/** Has no endpoints: connections to it end. */
export function blackHoleCluster({ mesh }: FixedClusterInput): Uint8Array {
  return bytesOf(ClusterSchema, {
    name: BLACK_HOLE_CLUSTER,
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STATIC },
    connectTimeout: duration(mesh.connectTimeout),
    altStatName: statPrefix(BLACK_HOLE_CLUSTER),
  });
}

/** Where programs that serve credentials beside the proxy listen. */
const CREDENTIAL_SOCKET = "./var/run/secrets/credential-uds/socket";

/** The program beside the proxy that serves credentials whose names begin with `sds://`. */
export function credentialCluster({ mesh }: FixedClusterInput): Uint8Array {
  const value = { address: { address: { case: "pipe" as const, value: { path: CREDENTIAL_SOCKET } } } };
  return bytesOf(ClusterSchema, {
    name: CREDENTIAL_CLUSTER,
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STATIC },
    connectTimeout: duration(mesh.connectTimeout),
    loadAssignment: {
      clusterName: CREDENTIAL_CLUSTER,
      endpoints: [{ lbEndpoints: [{ hostIdentifier: { case: "endpoint", value } }] }],
    },
    ...httpOptions({ protocol: "http2", pool: undefined, preserveHeaderCase: false, upstream: undefined }),
    altStatName: statPrefix(CREDENTIAL_CLUSTER),
  });
}

/** Goes to the address that the application called. */
export function passthroughCluster(input: FixedClusterInput): Uint8Array {
  const { traits } = input;
  return bytesOf(ClusterSchema, {
    ...originalDestination(PASSTHROUGH_CLUSTER, input),
    ...(traits.metadataExchange && { filters: [exchangeFilter(traits)] }),
  });
}

/** Goes to the application on the port that was called, from an address that the capture rules let pass. */
export function inboundPassthroughCluster(input: FixedClusterInput): Uint8Array {
  const { ipMode } = input.traits;
  return bytesOf(ClusterSchema, {
    ...originalDestination(INBOUND_PASSTHROUGH_CLUSTER, input),
    upstreamBindConfig: {
      sourceAddress: anyPort(inboundSource(ipMode)),
      ...(ipMode === "dual" && { extraSourceAddresses: [{ address: anyPort("::6") }] }),
    },
  });
}

/** The source of connections from a proxy to its own application. 6 is the number of inbound: 15006, 127.0.0.6, ::6. */
export function inboundSource(ipMode: IpMode): string {
  return ipMode === "ipv6" ? "::6" : "127.0.0.6";
}

/** An address to bind to, the port being chosen by the system. */
export function anyPort(address: string) {
  return { address, portSpecifier: { case: "portValue" as const, value: 0 } };
}

function originalDestination(name: string, { traits, mesh }: FixedClusterInput): Cluster {
  return {
    name,
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.ORIGINAL_DST },
    lbPolicy: Cluster_LbPolicy.CLUSTER_PROVIDED,
    ...connectionLimits({ pool: undefined, mesh, traits }),
    ...passthroughHttpOptions(traits.preserveHeaderCase),
    altStatName: statPrefix(PASSTHROUGH_CLUSTER),
  };
}
