/** Endpoints of other networks: proxies reach them through the gateways of these. */
import { CLUSTER_LABEL, NETWORK_LABEL } from "#config/terms/topology-labels.ts";
import type { Endpoint } from "#model/service/endpoint.ts";
import type { NetworkGateway } from "#model/service/network-gateway.ts";
import type { EndpointsInput } from "./input.ts";

/** Where the proxy is, and how it gets elsewhere. */
export type NetworkInput = Pick<EndpointsInput, "network" | "networkGateways" | "port"> & {
  /** Whether connections to the endpoint are mutual TLS: gateways tell by its server name where they go. */
  readonly acceptsMtls: (endpoint: Endpoint) => boolean;
};

/**
 * The endpoints of one locality as the proxy reaches them: those of its own network, and of networks without gateways,
 * directly; in place of the others their gateways, with as much weight as they have together. All weights are multiplied
 * by one number, so that those of other networks can be divided among several gateways.
 */
export function acrossNetworks(endpoints: readonly Endpoint[], input: NetworkInput): readonly Endpoint[] {
  const { networkGateways: gateways = [], network = "" } = input;
  if (gateways.length === 0) return endpoints;
  const factor = weightFactor(gateways);
  const direct: Endpoint[] = [];
  const weights = new Map<NetworkGateway, number>();
  for (const endpoint of endpoints) {
    const weight = Math.min((endpoint.weight || 1) * factor, MAX_WEIGHT);
    const ways = isSameNetwork(endpoint.network, network) ? [] : gatewaysOf(endpoint, gateways);
    if (ways.length === 0) {
      if (endpoint.address !== "") direct.push({ ...endpoint, weight });
    } else if (input.acceptsMtls(endpoint)) {
      for (const way of ways) weights.set(way, (weights.get(way) ?? 0) + Math.floor(weight / ways.length));
    }
  }
  const used = gateways.filter((gateway) => weights.has(gateway));
  return [...direct, ...used.map((gateway) => gatewayEndpoint(gateway, weights.get(gateway) || 1, input))];
}

const MAX_WEIGHT = 2 ** 32 - 1;

function isSameNetwork(a: string, b: string): boolean {
  return a === "" || b === "" || a === b;
}

/** Those of the endpoint's own cluster, or else all of its network. */
function gatewaysOf({ network, clusterId }: Endpoint, all: readonly NetworkGateway[]): readonly NetworkGateway[] {
  const ofNetwork = all.filter((gateway) => gateway.network === network);
  const ofCluster = ofNetwork.filter((gateway) => gateway.clusterId === clusterId);
  return ofCluster.length > 0 ? ofCluster : ofNetwork;
}

/** The least number that the gateways of each network, and of each cluster in it, divide. */
function weightFactor(gateways: readonly NetworkGateway[]): number {
  const groups = [
    ...Map.groupBy(gateways, ({ network }) => network).values(),
    ...Map.groupBy(gateways, ({ network, clusterId }) => `${network}/${clusterId}`).values(),
  ];
  return groups.reduce((least, { length }) => (least * length) / commonDivisor(least, length), 1);
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b);
}

function gatewayEndpoint(gateway: NetworkGateway, weight: number, { port }: NetworkInput): Endpoint {
  const { address, network, clusterId } = gateway;
  const labels = {
    ...(clusterId && { [CLUSTER_LABEL]: clusterId }),
    [NETWORK_LABEL]: network,
  };
  const nobody = { namespace: "", workloadName: "", serviceAccount: "", locality: "", health: "unknown" } as const;
  const ports = { [port.name]: gateway.port };
  return { ...nobody, address, ports, labels, tlsMode: "istio", network, clusterId, weight, isNetworkGateway: true };
}
