/** The gateways between networks: those the mesh's networks name, and services that are one. */

import { isIP } from "node:net";
import type { MeshNetworks } from "#config/mesh/mesh-networks.ts";
import { compareText } from "#lib/compare-text.ts";
import type { NetworkGateway } from "#model/network-gateway.ts";
import type { Service } from "#model/service.ts";
import { NETWORK_LABEL } from "./locality.ts";

const GATEWAY_PORT_LABEL = "networking.istio.io/gatewayPort";
const DEFAULT_PORT = 15443;

/** All gateways, each once, sorted. Those known by a name only are left out: Envoy wants addresses. */
export function networkGateways(
  services: readonly Service[],
  networks: MeshNetworks,
  clusterId: string,
): readonly NetworkGateway[] {
  const byService = servedNetworks(networks, clusterId);
  const fixed = Object.entries(networks).flatMap(([network, { gateways = [] }]) =>
    gateways.flatMap(({ address = "", port = 0 }) => ({ network, clusterId: "", address, port })),
  );
  const served = services
    .filter(({ externalAddresses = [] }) => externalAddresses.length > 0)
    .flatMap((service) => gatewaysOf(service, byService.get(service.hostname) ?? [], clusterId));
  const all = [...fixed, ...served].filter(({ address }) => isIP(address) !== 0);
  const distinct = new Map(all.map((gateway) => [JSON.stringify(Object.values(gateway)), gateway]));
  return [...distinct.values()].sort(
    (a, b) => compareText(a.address, b.address) || a.port - b.port || compareText(a.network, b.network),
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
