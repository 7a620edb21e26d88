/**
 * Answers to questions about hosts of the mesh. A host of Kubernetes is known under its short forms as well:
 *
 *   reviews.default.svc.cluster.local.   reviews.default.svc.   reviews.default.   reviews. (in its own namespace only)
 *
 * Resolvers try a name with the first search domain first, so `www.example.com.default.svc.cluster.local.` is answered
 * too, by a CNAME to the host: that ends the search after one question.
 */
import { isIPv4, isIPv6 } from "node:net";
import type { NameInfo, NameTable } from "./name-table.ts";

export interface LookupScope {
  /** Where the proxy runs. */
  readonly namespace: string;
  /** Of the proxy, with or without its namespace in front: `default.svc.cluster.local`. */
  readonly domain: string;
  /** As in resolv.conf; only the first is answered for. */
  readonly searchDomains: readonly string[];
}

/** The addresses of a host, by family. */
export interface HostAddresses {
  readonly v4: readonly string[];
  readonly v6: readonly string[];
}

export interface LookupTable {
  /** Lower-case names with a final dot. */
  readonly hosts: ReadonlyMap<string, HostAddresses>;
  /** The first search domain with a final dot; empty where there is none. */
  readonly searchSuffix: string;
}

/** A host that was found for a question. */
export interface Found extends HostAddresses {
  /** Name that the address records belong to. */
  readonly owner: string;
  /** Set when the question is answered by a CNAME to the owner. */
  readonly viaCname: boolean;
}

const KUBERNETES = "Kubernetes";

export function lookupTable(names: NameTable, scope: LookupScope): LookupTable {
  const hosts = new Map<string, HostAddresses>();
  for (const [hostname, info] of names) {
    const addresses = { v4: info.ips.filter((ip) => isIPv4(ip)), v6: info.ips.filter((ip) => isIPv6(ip)) };
    if (addresses.v4.length + addresses.v6.length === 0) continue;
    for (const host of hostForms(hostname, info, scope)) hosts.set(host.toLowerCase(), addresses);
  }
  const search = scope.searchDomains[0]?.toLowerCase() ?? "";
  return { hosts, searchSuffix: search === "" || search.endsWith(".") ? search : `${search}.` };
}

/** Finds a lower-case name with a final dot, exactly or by a wildcard, the closest one first. */
export function lookup(table: LookupTable, name: string): Found | undefined {
  const exact = find(table, name);
  if (exact !== undefined) return exact;
  for (let dot = name.indexOf("."); dot >= 0 && dot < name.length - 1; dot = name.indexOf(".", dot + 1)) {
    const wildcard = find(table, `*${name.slice(dot)}`);
    if (wildcard !== undefined) return wildcard.viaCname ? wildcard : { ...wildcard, owner: name };
  }
  return undefined;
}

/** All names, with final dots, under which a host of the name table is known. */
export function hostForms(hostname: string, info: NameInfo, { namespace, domain }: LookupScope): readonly string[] {
  const qualified = hostname.endsWith(".") ? hostname : `${hostname}.`;
  if (info.registry !== KUBERNETES) return [qualified];
  // The control plane sends some hosts a second time with a final dot.
  if (hostname.endsWith(".")) return [];
  const parts = domain.split(".");
  const clusterParts = parts[0] === namespace ? parts.slice(1) : parts;
  const clusterDomain = clusterParts.join(".");
  // Two clusters may both have a service of this name and namespace: short forms are for those of our own domain.
  if (clusterDomain === "" || !hostname.endsWith(clusterDomain)) return [qualified];
  return [
    qualified,
    `${info.shortname}.${info.namespace}.`,
    ...(info.namespace === namespace ? [`${info.shortname}.`] : []),
    `${info.shortname}.${info.namespace}.${clusterParts[0]}.`,
    ...info.altHosts.map((host) => `${host}.`),
  ];
}

function find({ hosts, searchSuffix }: LookupTable, name: string): Found | undefined {
  const exact = hosts.get(name);
  if (exact !== undefined) return { ...exact, owner: name, viaCname: false };
  if (searchSuffix === "" || !name.endsWith(searchSuffix)) return undefined;
  const owner = name.slice(0, -searchSuffix.length);
  const expanded = owner.endsWith(searchSuffix) ? undefined : hosts.get(owner);
  return expanded === undefined ? undefined : { ...expanded, owner, viaCname: true };
}
