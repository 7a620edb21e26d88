/** The gateways between networks: those the mesh's networks name, and services that are one. */

import { isIP } from "node:net";
import type { MeshNetworks } from "#config/mesh/mesh-networks.ts";
import { NETWORK_LABEL } from "#config/terms/topology-labels.ts";
import { compareText } from "#lib/text/compare-text.ts";
import type { GatewayAddresses, NetworkGateway } from "#model/service/network-gateway.ts";
import type { Service } from "#model/service/service.ts";

const GATEWAY_PORT_LABEL = "networking.istio.io/gatewayPort";
const DEFAULT_PORT = 15443;

/** The gateways that services of a cluster are, and those with an address of their own, which may be a host name. */
export function networkGateways(
  services: readonly Service[],
  networks: MeshNetworks,
  clusterId: string,
): readonly NetworkGateway[] {
  const byService = servedNetworks(networks, clusterId);
  const fixed = Object.entries(networks).flatMap(([network, { gateways = [] }]) =>
    gateways.flatMap(({ address = "", port = 0 }) => (address === "" ? [] : { network, clusterId: "", address, port })),
  );
  const served = services
    .filter(({ externalAddresses = [] }) => externalAddresses.length > 0)
    .flatMap((service) => gatewaysOf(service, byService.get(service.hostname) ?? [], clusterId));
  return [...fixed, ...served];
}

/** Those known by a host name, each once, sorted. */
export function namedGateways(gateways: readonly NetworkGateway[]): readonly NetworkGateway[] {
  return distinct(gateways.filter(({ address }) => isIP(address) === 0));
}

/** All gateways by their IP addresses, each once, sorted. Without an address for its name there is none: Envoy resolves no endpoints. */
export function resolvedGateways(
  gateways: readonly NetworkGateway[],
  addresses: GatewayAddresses,
): readonly NetworkGateway[] {
  return distinct(
    gateways.flatMap((gateway) =>
      isIP(gateway.address) === 0
        ? (addresses.get(gateway.address) ?? []).map((address) => ({ ...gateway, address }))
        : gateway,
    ),
  );
}

function distinct(gateways: readonly NetworkGateway[]): readonly NetworkGateway[] {
  const known = new Map(gateways.map((gateway) => [JSON.stringify(Object.values(gateway)), gateway]));
  return [...known.values()].sort(
    (a, b) =>
      compareText(a.address, b.address) ||
      a.port - b.port ||
      compareText(a.network, b.network) ||
      compareText(a.clusterId, b.clusterId),
  );
}

interface Served {
  readonly network: string;
  readonly port: number;
}

/** What services of this cluster are gateways of, by hostname. */
function servedNetworks(networks: MeshNetworks, clusterId: string): ReadonlyMap<string, readonly Served[]> {
  const all = Object.entries(networks)
    .filter(([, { endpoints = [] }]) => endpoints.some(({ fromRegistry }) => fromRegistry === clusterId))
    .flatMap(([network, { gateways = [] }]) =>
      gateways.map(({ registryServiceName = "", port = 0 }) => ({ hostname: registryServiceName, network, port })),
    );
  return Map.groupBy(all, ({ hostname }) => hostname);
}

function gatewaysOf(service: Service, named: readonly Served[], clusterId: string): readonly NetworkGateway[] {
  const labelled = service.labels[NETWORK_LABEL] ?? "";
  const served = labelled === "" ? named : labelledGateway(service, labelled);
  return (service.externalAddresses ?? []).flatMap((address) =>
    served.map(({ network, port }) => ({ network, clusterId, address, port: service.externalPorts?.[port] ?? port })),
  );
}

function labelledGateway({ labels, ports }: Service, network: string): readonly Served[] {
  const stated = labels[GATEWAY_PORT_LABEL] ?? "";
  const port = /^[+-]?\d+$/.test(stated) ? Number(stated) : DEFAULT_PORT;
  return ports.some((each) => each.port === port) ? [{ network, port }] : [];
}
