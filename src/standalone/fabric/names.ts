/** Which addresses a host name has inside the fabric: what a cluster's own DNS server knows. */
import { isIPv4 } from "node:net";
import { serviceKey } from "#model/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { CONTROL_PLANE } from "../mesh/check-members.ts";
import { type AddressRange, DEFAULT_RANGE } from "../plan/address-range.ts";
import { DOMAIN } from "../plan/files.ts";

/** IPv4 addresses by lower-case host name without a final dot, and host names by `1.0.0.10.in-addr.arpa`. */
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
  for (const [address, names] of namesByAddress(services, endpoints)) table.set(reverseName(address), names);
  return table;
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
    const host = service.hostname.toLowerCase();
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
  return name.toLowerCase().replace(/\.$/, "").endsWith(REVERSE_DOMAIN);
}

/** What the table says of a name, or undefined when nobody has it. */
export function lookUp(table: HostTable, name: string): readonly string[] | undefined {
  return table.get(name.toLowerCase().replace(/\.$/, ""));
}
