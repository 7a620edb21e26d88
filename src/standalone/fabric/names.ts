/** Which addresses a host name has inside the fabric: what a cluster's own DNS server knows. */
import { isIPv4 } from "node:net";
import { type Service, serviceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { type AddressRange, DEFAULT_RANGE } from "../mesh/address-range.ts";
import { CONTROL_PLANE } from "../mesh/check-members.ts";
import { DOMAIN } from "../plan/files.ts";

/** IPv4 addresses, or another host, by lower-case host name without a final dot; host names by `1.0.0.10.in-addr.arpa`. */
export type HostTable = ReadonlyMap<string, readonly string[] | Alias>;

/** An ExternalName service: all that is known of it is known of the host that it stands for. */
export interface Alias {
  readonly aliasOf: string;
}

/** Where a name leads. */
export interface FoundHost {
  /** The name itself, then the host that it is an alias of, and so on. */
  readonly names: readonly string[];
  /** Of the last of them; undefined when nobody here has it. */
  readonly values: readonly string[] | undefined;
}

const CONTROL_PLANE_HOST = `${CONTROL_PLANE.name}.${CONTROL_PLANE.namespace}.svc.${DOMAIN}`;

/** What is known before any configuration is read: where the control plane is. */
export function firstHosts({ controlPlane }: AddressRange): HostTable {
  return new Map([[CONTROL_PLANE_HOST, [controlPlane]]]);
}

/** What the names of hosts depend on. */
export interface HostsInput {
  readonly snapshot: Pick<Snapshot, "services" | "endpoints">;
  /** Names of workloads by address. */
  readonly workloads?: ReadonlyMap<string, string>;
  readonly range?: AddressRange;
}

/**
 * Addresses of Kubernetes services, and the endpoints themselves for headless ones. Hosts of service entries are known to
 * sidecars alone: a proxy that looks one up must not be given the address that exists only to be captured.
 */
export function hostTable({ snapshot, workloads = new Map(), range = DEFAULT_RANGE }: HostsInput): HostTable {
  const { services, endpoints } = snapshot;
  const table = new Map(firstHosts(range));
  for (const service of services) {
    if (service.registry !== "Kubernetes") continue;
    const host = hostKey(service.hostname);
    const found = hostOf(service, endpoints);
    if (!table.has(host)) table.set(host, found);
    if (!service.headless || "aliasOf" in found) continue;
    // Each by a name of its own, as pods of a StatefulSet have it.
    for (const address of found) {
      const name = workloads.get(address);
      if (name !== undefined) table.set(`${hostKey(name)}.${host}`, [address]);
    }
  }
  for (const [address, names] of namesByAddress(services, endpoints)) table.set(reverseName(address), names);
  return table;
}

function hostOf(service: Service, endpoints: Snapshot["endpoints"]): readonly string[] | Alias {
  if (service.aliasOf !== undefined) return { aliasOf: hostKey(service.aliasOf) };
  const found = service.headless
    ? (endpoints.get(serviceKey(service))?.endpoints ?? []).map(({ address }) => address)
    : service.addresses;
  return [...new Set(found.filter((address) => isIPv4(address)))];
}

/** Names of addresses as a cluster gives them: `10-0-0-1.web.shop.svc.cluster.local` is an endpoint of `web`. */
function namesByAddress(
  services: Snapshot["services"],
  endpoints: Snapshot["endpoints"],
): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  const add = (address: string, name: string) => {
    if (isIPv4(address)) names.set(address, [...(names.get(address) ?? []), name]);
  };
  for (const service of services) {
    if (service.registry !== "Kubernetes") continue;
    const host = hostKey(service.hostname);
    for (const address of service.headless ? [] : service.addresses) add(address, host);
    const found = (endpoints.get(serviceKey(service))?.endpoints ?? []).map(({ address }) => address);
    for (const address of new Set(found)) add(address, `${address.replaceAll(".", "-")}.${host}`);
  }
  return names;
}

/** Under which the name of an address is asked for. */
function reverseName(address: string): string {
  return `${address.split(".").toReversed().join(".")}${REVERSE_DOMAIN}`;
}

const REVERSE_DOMAIN = ".in-addr.arpa";

/** Whether a name stands for an address. */
export function isReverseName(name: string): boolean {
  return hostKey(name).endsWith(REVERSE_DOMAIN);
}

/** What the table says of a name, or of the host that it is an alias of. */
export function lookUp(table: HostTable, name: string): FoundHost {
  const names = new Set<string>();
  for (let host = hostKey(name); !names.has(host); ) {
    names.add(host);
    const entry = table.get(host);
    if (entry === undefined || !("aliasOf" in entry)) return { names: [...names], values: entry };
    host = entry.aliasOf;
  }
  // Aliases of each other lead to no host.
  return { names: [...names], values: [] };
}

/** A name as the table has it. */
function hostKey(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}
