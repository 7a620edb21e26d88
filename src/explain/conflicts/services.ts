/** Conflicts among services: hosts, addresses and ports that several of them claim. */
import { NO_ENDPOINTS } from "#model/endpoint.ts";
import { isHttp, type Service, type ServicePort, serviceKey } from "#model/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { Claims, type Search } from "./conflict.ts";

interface Claimed {
  readonly service: Service;
  readonly port: ServicePort;
}

/** Addresses and ports that several TCP services claim: nothing tells their connections apart. */
export function* addressConflicts({ services }: Snapshot): Search {
  const claims = new Claims<Service>();
  for (const service of services) {
    yield undefined;
    if (service.resolution === "alias") continue;
    for (const port of service.ports) {
      if (port.protocol === "UDP" || port.protocol === "Unsupported" || isHttp(port.protocol)) continue;
      for (const address of service.addresses.length > 0 ? service.addresses : ["0.0.0.0"]) {
        const winner = claims.claim(`${address}:${port.port}`, service, (other) => other !== service);
        if (winner === undefined) continue;
        yield {
          metric: "pilot_conflict_outbound_listener_tcp_over_current_tcp",
          what: `TCP at ${address}:${port.port}`,
          winner: ownerOf(winner),
          loser: ownerOf(service),
          loserNamespace: service.namespace,
          outcome: "its connections are taken for the other's where both are seen",
        };
      }
    }
  }
}

/** Ports of workloads that services claim for different protocols. */
export function* inboundConflicts({ services, endpoints }: Snapshot): Search {
  const claims = new Claims<Claimed>();
  for (const service of services) {
    yield undefined;
    const told = new Set<string>();
    for (const endpoint of (endpoints.get(serviceKey(service)) ?? NO_ENDPOINTS).endpoints) {
      for (const port of service.ports) {
        const target = endpoint.ports[port.name];
        const winner = claims.claim(
          `${endpoint.address}:${target}`,
          { service, port },
          (other) => isHttp(other.port.protocol) !== isHttp(port.protocol),
        );
        const owners = `${winner && ownerOf(winner.service)} ${target}`;
        if (winner === undefined || told.has(owners)) continue;
        told.add(owners);
        yield {
          metric: "pilot_conflict_inbound_listener",
          what: `port ${target} of a workload, here for ${port.protocol},`,
          winner: `${ownerOf(winner.service)} for ${winner.port.protocol}`,
          loser: ownerOf(service),
          loserNamespace: service.namespace,
          outcome: "the workload is called with the other protocol",
        };
      }
    }
  }
}

function ownerOf({ registry, namespace, name, hostname }: Service): string {
  return registry === "Kubernetes" ? `Service/${namespace}/${name}` : `the ServiceEntry of ${hostname} in ${namespace}`;
}
