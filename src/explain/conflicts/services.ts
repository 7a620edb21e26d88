/** Conflicts among services: hosts, addresses and ports that several of them claim. */
import { isIP } from "node:net";
import type { ServiceEntry } from "#config/kinds/service-entry/schema.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { isTls } from "#config/terms/protocol.ts";
import { ITEMS_PER_STEP } from "#lib/async/steps.ts";
import { compareText } from "#lib/text/compare-text.ts";
import { NO_ENDPOINTS } from "#model/service/endpoint.ts";
import { isHttp, type Service, type ServiceKey, type ServicePort, serviceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { Claims, type Search } from "./conflict.ts";

interface Claimed {
  readonly service: Service;
  readonly port: ServicePort;
}

/** The objects that define each service, the one that counts first: those of Kubernetes come before ServiceEntries, then older ones. */
export type Definitions = ReadonlyMap<ServiceKey, readonly ConfigObject[]>;

/** Finds them. */
export function definitionsOf(objects: readonly ConfigObject[], domain: string): Definitions {
  const inOrder = objects
    .filter(({ kind }) => kind === "Service" || kind === "ServiceEntry")
    .sort((a, b) => compareText(a.kind, b.kind) || a.metadata.createdAt - b.metadata.createdAt || byName(a, b));
  const definitions = new Map<ServiceKey, ConfigObject[]>();
  for (const object of inOrder) {
    for (const hostname of hostsOf(object, domain)) {
      const key = serviceKey({ namespace: object.metadata.namespace, hostname });
      const known = definitions.get(key);
      if (known === undefined) definitions.set(key, [object]);
      else known.push(object);
    }
  }
  return definitions;
}

function hostsOf({ kind, metadata, spec }: ConfigObject, domain: string): readonly string[] {
  if (kind === "Service") return [`${metadata.name}.${metadata.namespace}.svc.${domain}`];
  const { hosts } = spec as ServiceEntry;
  return hosts.length > 1 ? [...new Set(hosts)] : hosts;
}

function byName(a: ConfigObject, b: ConfigObject): number {
  return compareText(a.metadata.name, b.metadata.name);
}

/** Hosts that several objects of a namespace define. */
export function* definitionConflicts(_: Snapshot, definitions: Definitions): Search {
  for (const [key, owners] of definitions) {
    const [winner] = owners;
    if (winner === undefined || owners.length === 1) continue;
    yield undefined;
    for (const loser of owners.slice(1)) {
      yield {
        metric: "pilot_duplicate_envoy_clusters",
        what: `host "${key.slice(key.indexOf("/") + 1)}"`,
        winner: objectKey(winner),
        loser: objectKey(loser),
        loserNamespace: loser.metadata.namespace,
        outcome: "its ports that the other has too are not used; endpoints of both are",
      };
    }
  }
}

/** Addresses and ports that several TCP services claim: nothing tells their connections apart. */
export function* addressConflicts({ services }: Snapshot, definitions: Definitions): Search {
  const claims = new Claims<Service>();
  const isRival = (one: Service, other: Service) => ownerOf(one, definitions) !== ownerOf(other, definitions);
  let count = 0;
  for (const service of services) {
    if (count++ % ITEMS_PER_STEP === 0) yield undefined;
    if (service.resolution === "alias") continue;
    for (const port of service.ports) {
      for (const address of callAddresses(service, port)) {
        const winner = claims.claim(`${address}:${port.port}`, service, isRival);
        if (winner === undefined) continue;
        yield {
          metric: "pilot_conflict_outbound_listener_tcp_over_current_tcp",
          what: `TCP at ${address}:${port.port}`,
          winner: ownerOf(winner, definitions),
          loser: ownerOf(service, definitions),
          loserNamespace: service.namespace,
          outcome: "its connections are taken for the other's where both are seen",
        };
      }
    }
  }
}

/** The addresses that alone tell connections to a port from those to others. */
function callAddresses({ addresses, headless }: Service, { protocol }: ServicePort): readonly string[] {
  if (protocol === "UDP" || protocol === "Unsupported" || isHttp(protocol)) return [];
  if (addresses.length > 0) return addresses;
  // TLS is told by the server's name, and a headless service is called by the addresses of its endpoints.
  return isTls(protocol) || headless ? [] : ["0.0.0.0"];
}

/**
 * Ports of workloads that services claim for different protocols. It is a proxy in front of the workload that has to
 * choose one: there is none outside the mesh, nor behind a host that is found by DNS, which are called with either.
 */
export function* inboundConflicts({ services, endpoints }: Snapshot, definitions: Definitions): Search {
  const claims: ClaimedPorts = new Map();
  let count = 0;
  for (const service of services) {
    if (service.meshExternal) continue;
    const called = (endpoints.get(serviceKey(service)) ?? NO_ENDPOINTS).endpoints;
    if (count++ % ITEMS_PER_STEP === 0 || called.length > ITEMS_PER_STEP) yield undefined;
    const told = new Set<string>();
    for (const port of service.ports) {
      const [own, rival] = isHttp(port.protocol) ? (["http", "others"] as const) : (["others", "http"] as const);
      const claimed = { service, port };
      for (const { address, ports } of called) {
        const target = ports[port.name];
        const claim = target === undefined ? undefined : claimOf(claims, address, target);
        if (target === undefined || claim === undefined) continue;
        claim[own] ??= claimed;
        const winner = claim[rival];
        if (winner === undefined) continue;
        const owners = `${ownerOf(winner.service, definitions)} ${target}`;
        if (told.has(owners)) continue;
        told.add(owners);
        yield {
          metric: "pilot_conflict_inbound_listener",
          what: `port ${target} of a workload, here for ${port.protocol},`,
          winner: `${ownerOf(winner.service, definitions)} for ${winner.port.protocol}`,
          loser: ownerOf(service, definitions),
          loserNamespace: service.namespace,
          outcome: "the workload is called with the other protocol",
        };
      }
    }
  }
}

/** Ports of workloads, by address and number. Looking twice costs less than making a text of both, for each endpoint after each change. */
type ClaimedPorts = Map<string, Map<number, PortClaim>>;

/** Who calls a port first by HTTP, and who by anything else. */
interface PortClaim {
  http: Claimed | undefined;
  others: Claimed | undefined;
}

/** Undefined for what is no address. */
function claimOf(claims: ClaimedPorts, address: string, port: number): PortClaim | undefined {
  const known = claims.get(address);
  if (known === undefined && isIP(address) === 0) return undefined;
  const ports = known ?? new Map<number, PortClaim>();
  if (known === undefined) claims.set(address, ports);
  const claim = ports.get(port) ?? { http: undefined, others: undefined };
  ports.set(port, claim);
  return claim;
}

function ownerOf(service: Service, definitions: Definitions): string {
  const [owner] = definitions.get(serviceKey(service)) ?? [];
  return owner === undefined ? `the service ${service.hostname} of ${service.namespace}` : objectKey(owner);
}
