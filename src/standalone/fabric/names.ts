/** Which addresses a host name has inside the fabric: what a cluster's own DNS server knows. */
import { isIPv4 } from "node:net";
import { serviceKey } from "#model/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { CONTROL_PLANE } from "../mesh/check-members.ts";
import { type AddressRange, DEFAULT_RANGE } from "../plan/address-range.ts";
import { DOMAIN } from "../plan/files.ts";

/** IPv4 addresses by lower-case host name without a final dot. */
export type HostTable = ReadonlyMap<string, readonly string[]>;

const CONTROL_PLANE_HOST = `${CONTROL_PLANE.name}.${CONTROL_PLANE.namespace}.svc.${DOMAIN}`;

/** What is known before any configuration is read: where the control plane is. */
export function firstHosts({ controlPlane }: AddressRange): HostTable {
  return new Map([[CONTROL_PLANE_HOST, [controlPlane]]]);
}

/**
 * Addresses of Kubernetes services, and the endpoints themselves for headless ones. Hosts of service entries are known to
 * sidecars alone: a proxy that looks one up must not be given the address that exists only to be captured.
 */
export function hostTable({ services, endpoints }: Snapshot, range = DEFAULT_RANGE): HostTable {
  const table = new Map(firstHosts(range));
  for (const service of services) {
    if (service.registry !== "Kubernetes") continue;
    const found = service.headless
      ? (endpoints.get(serviceKey(service))?.endpoints ?? []).map(({ address }) => address)
      : service.addresses;
    const addresses = [...new Set(found.filter((address) => isIPv4(address)))];
    const host = service.hostname.toLowerCase();
    if (!table.has(host)) table.set(host, addresses);
  }
  return table;
}

/** The addresses of a name, or undefined when nobody has it. */
export function lookUp(table: HostTable, name: string): readonly string[] | undefined {
  return table.get(name.toLowerCase().replace(/\.$/, ""));
}
