/** The table from which the agent's DNS proxy answers. */

import { isIP } from "node:net";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { NameTable_NameInfoSchema, NameTableSchema } from "#gen/istio/networking/nds/v1/nds_pb.ts";
import { compareText } from "#lib/text/compare-text.ts";
import { type Endpoint, type EndpointSet, endpointPort, NO_ENDPOINTS, takesRequests } from "#model/service/endpoint.ts";
import { type Service, serviceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { type Recipe, recipe } from "../recipes/recipe.ts";
import { serviceAddresses } from "../scope/addresses.ts";
import { scopeOf } from "../scope/egress.ts";
import type { NamesView } from "../views/views.ts";
import { bytesOf } from "../wire/encode.ts";

/** Field of the map in the message, whose entries are its parts. */
const TABLE = 1;

/** All names that proxies of the view can look up. Short forms of Kubernetes names are the agent's business. */
export function planNameTable(snapshot: Snapshot, view: NamesView): Recipe {
  const named = new Set(scopeOf(snapshot, view).listeners.flatMap(({ services }) => services));
  const entries = new Map<string, TableEntryInput>();
  for (const service of named) {
    const endpoints = snapshot.endpoints.get(serviceKey(service)) ?? NO_ENDPOINTS;
    const ips = addressesOf(service, endpoints, { view, everywhere: snapshot.features.multiclusterHeadless });
    for (const entry of podEntries(service, endpoints, view)) entries.set(entry.hostname, entry);
    if (ips.length === 0) continue;
    const { hostname, registry, name, namespace } = service;
    const own = registry === "Kubernetes" ? { shortname: name, namespace } : { shortname: "", namespace: "" };
    entries.set(hostname, joined(entries.get(hostname), { hostname, ips, registry, ...own }));
  }
  const recipes = [...entries.values()].map((input) => recipe({ name: input.hostname, input, build: tableEntry }));
  recipes.sort((a, b) => compareText(a.name, b.name));
  return recipe({ name: "", input: {}, build: emptyTable, parts: { field: TABLE, recipes } });
}

/** Listeners may know one host from several namespaces. It then has all their addresses, but for Kubernetes, which has its own. */
function joined(before: TableEntryInput | undefined, entry: TableEntryInput): TableEntryInput {
  if (before?.registry === "Kubernetes") return before;
  if (before === undefined || entry.registry === "Kubernetes") return entry;
  return { ...entry, ips: [...new Set([...before.ips, ...entry.ips])] };
}

/** A headless service has the addresses of its endpoints. */
function addressesOf(
  service: Service,
  { endpoints }: EndpointSet,
  { view, everywhere }: { readonly view: NamesView; readonly everywhere: boolean },
): readonly string[] {
  const { traits, network, clusterId } = view;
  const own = serviceAddresses(service, { ...traits.listener, autoAddresses: traits.autoAddresses });
  if (own.length > 0) return own.filter((address) => isIP(address) !== 0);
  return published(service, endpoints, network)
    .filter((endpoint) => everywhere || isSame(endpoint.clusterId, clusterId))
    .flatMap(({ address, addresses = [address] }) => addresses);
}

/** The endpoints whose addresses a name of the service may stand for. */
function published(service: Service, endpoints: readonly Endpoint[], network: string): readonly Endpoint[] {
  const [port] = service.ports;
  if (service.resolution !== "passthrough" || port === undefined) return [];
  return endpoints
    .filter((endpoint) => endpointPort(endpoint, port) !== undefined)
    .filter((endpoint) => takesRequests(endpoint) || service.publishNotReady === true)
    .filter((endpoint) => isIP(endpoint.address) !== 0 && isSame(endpoint.network, network));
}

/** Pods of a headless service that have names of their own: `hostname.subdomain` in the domain of the service. */
function podEntries(service: Service, { endpoints }: EndpointSet, view: NamesView): readonly TableEntryInput[] {
  const { network, clusterId } = view;
  const { hostname, registry, namespace } = service;
  if (service.addresses.length > 0) return [];
  const domain = hostname.slice(hostname.indexOf(".") + 1);
  const named = published(service, endpoints, network).filter(({ podName }) => podName !== undefined);
  const byName = Map.groupBy(named, ({ podName }) => `${podName?.hostname}.${podName?.subdomain}`);
  // Pods of several clusters may have one name: that of the proxy's own cluster is meant.
  const near = (pods: readonly Endpoint[]) => pods.filter((pod) => isSame(pod.clusterId, clusterId));
  return [...byName].map(([shortname, pods]) => ({
    hostname: `${shortname}.${domain}`,
    ips: (near(pods).length > 0 ? near(pods) : pods).flatMap(({ address, addresses = [address] }) => addresses),
    registry,
    shortname,
    namespace,
  }));
}

/** Who says nothing may be anywhere. */
function isSame(a: string, b: string): boolean {
  return a === "" || b === "" || a === b;
}

interface TableEntryInput {
  readonly hostname: string;
  readonly ips: readonly string[];
  readonly registry: string;
  readonly shortname: string;
  readonly namespace: string;
}

/** One entry of the map: on the wire a message of key and value. */
function tableEntry({ hostname, ips, ...info }: TableEntryInput): Uint8Array {
  const value = bytesOf(NameTable_NameInfoSchema, { ips: [...ips], ...info });
  return new BinaryWriter()
    .tag(1, WireType.LengthDelimited)
    .string(hostname)
    .tag(2, WireType.LengthDelimited)
    .bytes(value)
    .finish();
}

function emptyTable(): Uint8Array {
  return bytesOf(NameTableSchema, {});
}
