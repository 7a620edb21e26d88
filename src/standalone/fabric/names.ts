/** Which addresses a host name has inside the fabric. */
import { isIPv4 } from "node:net";
import { serviceKey } from "#model/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { CONTROL_PLANE } from "../mesh/check-members.ts";
import { DOMAIN } from "../plan/files.ts";
import { FABRIC } from "../plan/names.ts";

/** IPv4 addresses by lower-case host name without a final dot; `*.` in front stands for all names below. */
export type HostTable = ReadonlyMap<string, readonly string[]>;

const CONTROL_PLANE_HOST = `${CONTROL_PLANE.name}.${CONTROL_PLANE.namespace}.svc.${DOMAIN}`;

/** What is known before any configuration is read: where the control plane is. */
export const FIRST_HOSTS: HostTable = new Map([[CONTROL_PLANE_HOST, [FABRIC.controlPlane]]]);

/** Service addresses, and the endpoints themselves for headless services. */
export function hostTable({ services, endpoints }: Snapshot): HostTable {
  const table = new Map(FIRST_HOSTS);
  for (const service of services) {
    const own = service.autoAddress === undefined ? service.addresses : [...service.addresses, service.autoAddress];
    const found = service.headless
      ? (endpoints.get(serviceKey(service))?.endpoints ?? []).map(({ address }) => address)
      : own;
    const addresses = [...new Set(found.filter((address) => isIPv4(address)))];
    const host = service.hostname.toLowerCase();
    if (!table.has(host)) table.set(host, addresses);
  }
  return table;
}

/** The addresses of a name, or undefined when nobody has it; the nearest wildcard counts when there is no exact match. */
export function lookUp(table: HostTable, name: string): readonly string[] | undefined {
  const wanted = name.toLowerCase().replace(/\.$/, "");
  const exact = table.get(wanted);
  if (exact !== undefined) return exact;
  for (let dot = wanted.indexOf("."); dot >= 0; dot = wanted.indexOf(".", dot + 1)) {
    const wild = table.get(`*${wanted.slice(dot)}`);
    if (wild !== undefined) return wild;
  }
  return undefined;
}
