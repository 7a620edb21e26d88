/**
 * What a proxy can call, and through which listeners. Without a Sidecar that is everything its namespace sees, through one
 * listener for all ports; a Sidecar names hosts for each of its listeners. Routers always see everything.
 *
 *   egress hosts --> services and virtual services of each listener --+
 *                    destinations of those virtual services ----------+--> services in scope: clusters, endpoints
 */

import type { SidecarEgress } from "#config/kinds/sidecar/schema.ts";
import { MESH_GATEWAY } from "#config/kinds/virtual-service/gateway-name.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import { hostsMatch, isSubsetOf, isWildcard } from "#config/terms/host.ts";
import { parseProtocol } from "#config/terms/protocol.ts";
import { isVisible } from "#config/terms/visibility.ts";
import { compareText } from "#lib/text/compare-text.ts";
import { type Service, type ServicePort, serviceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { derived, kept } from "../recipes/indexes.ts";
import {
  declarationsFor,
  distinctServices,
  servicesOfHost,
  type Viewpoint,
  type VisibleServices,
  visibleServices,
} from "./services.ts";
import { type SidecarObject, sidecarNamed } from "./sidecars.ts";
import { type BoundVirtualService, destinationsFrom, virtualServicesOf } from "./virtual-services.ts";

/** One way out of the workload. */
export interface EgressListener {
  /** Undefined for all ports of its services that no listener before it has. */
  readonly port: ServicePort | undefined;
  /** An address or `unix://PATH`; empty for the addresses of the services. */
  readonly bind: string;
  /** Applications connect to it themselves, nothing is redirected to it. */
  readonly isOpened: boolean;
  readonly services: readonly Service[];
  readonly virtualServices: readonly BoundVirtualService[];
}

/** All that a proxy can call. The lists keep their identity as long as they have the same items. */
export interface EgressScope {
  readonly sidecar: SidecarObject | undefined;
  /** Of all listeners, and those that their virtual services lead to. */
  readonly services: VisibleServices;
  /** In order; the one without a port is the last. */
  readonly listeners: readonly EgressListener[];
}

/** The part of a snapshot that scopes are made from. */
export type ScopeSnapshot = Pick<Snapshot, "services" | "mesh" | "features" | "virtualServices" | "sidecars">;

/** Who looks. */
export interface ScopeViewpoint extends Viewpoint {
  /** The key of the Sidecar it is under; empty for none. */
  readonly sidecar: string;
}

/** The scope of a viewpoint. */
export function scopeOf(snapshot: ScopeSnapshot, viewpoint: ScopeViewpoint): EgressScope {
  const { services, mesh, features, virtualServices } = snapshot;
  const sidecar = sidecarNamed(snapshot, viewpoint.sidecar);
  if (sidecar === undefined || !limitsEgress(sidecar)) return wholeScope(snapshot, viewpoint, sidecar);
  const key = `scope ${viewpoint.namespace} ${viewpoint.sidecar}`;
  return kept(services, key, [mesh, features, virtualServices, sidecar], () =>
    sidecarScope(snapshot, viewpoint.namespace, sidecar),
  );
}

/** The services of a viewpoint, as `scopeOf` has them. */
export function servicesInScope(snapshot: ScopeSnapshot, viewpoint: ScopeViewpoint): VisibleServices {
  const sidecar = sidecarNamed(snapshot, viewpoint.sidecar);
  // Asked for each destination of each route: most often there is no need to look at virtual services.
  if (sidecar === undefined || !limitsEgress(sidecar)) {
    return hiddenAtHome(snapshot, viewpoint).length === 0
      ? visibleServices(snapshot, viewpoint)
      : wholeScope(snapshot, viewpoint, sidecar).services;
  }
  return scopeOf(snapshot, viewpoint).services;
}

function limitsEgress({ spec }: SidecarObject): boolean {
  return (spec.egress ?? []).length > 0;
}

function wholeScope(
  snapshot: ScopeSnapshot,
  viewpoint: ScopeViewpoint,
  sidecar: SidecarObject | undefined,
): EgressScope {
  const visible = visibleServices(snapshot, viewpoint);
  const virtualServices = virtualServicesOf(snapshot, MESH_GATEWAY, viewpoint.namespace);
  const listener = { port: undefined, bind: "", isOpened: false, services: visible.list, virtualServices };
  const hidden = hiddenAtHome(snapshot, viewpoint);
  if (hidden.length === 0) return { sidecar, services: visible, listeners: [listener] };
  const named = new Set(hidden.map(({ hostname }) => hostname));
  const led = inferred(snapshot, listener, viewpoint.namespace).filter(({ hostname }) => named.has(hostname));
  const all = [...visible.list, ...led];
  const services = distinct(
    "",
    kept(visible, `led to ${viewpoint.namespace}`, all, () => all),
  );
  return { sidecar, services, listeners: [listener] };
}

/** Services that their own namespace does not see. Its routes lead to them nevertheless. */
function hiddenAtHome({ services, mesh }: ScopeSnapshot, { role, namespace }: ScopeViewpoint): readonly Service[] {
  return role === "sidecar" ? unseenAtHome(namespace, services, mesh) : [];
}

const unseenAtHome = derived((namespace: string, services: readonly Service[], mesh: MeshConfig) => {
  const fallback = mesh.defaultServiceExportTo;
  return services.filter(
    ({ namespace: home, exportTo }) => home === namespace && !isVisible(exportTo, { home, namespace, fallback }),
  );
});

function sidecarScope(snapshot: ScopeSnapshot, namespace: string, sidecar: SidecarObject): EgressScope {
  const listeners = (sidecar.spec.egress ?? []).map((egress, i) =>
    egressListener(snapshot, egress, { namespace, key: `${namespace} ${i}`, sidecar }),
  );
  const all = listeners.flatMap((listener) => [...listener.services, ...inferred(snapshot, listener, namespace)]);
  return {
    sidecar,
    services: distinct(
      "",
      kept(sidecar, `services ${namespace}`, all, () => all),
    ),
    listeners,
  };
}

const distinct = derived((_: string, services: readonly Service[]) => distinctServices(services));

interface Owner {
  readonly namespace: string;
  readonly key: string;
  readonly sidecar: SidecarObject;
}

function egressListener(snapshot: ScopeSnapshot, egress: SidecarEgress, owner: Owner): EgressListener {
  const { namespace, key, sidecar } = owner;
  const { unifiedScope } = snapshot.features;
  const { port, bind = "", captureMode } = egress;
  const { number = 0, protocol = "", name = "" } = port ?? {};
  const own = port === undefined ? undefined : { port: number, protocol: parseProtocol(protocol), name };
  const imports = importsOf(egress.hosts, namespace);
  const declared = declarationsFor(snapshot, namespace).flatMap((service) => {
    const hosts = importsFrom(imports, service.namespace).find((each) => hasService(each, service.hostname));
    return hosts === undefined ? [] : withImportedAliases(service, hosts);
  });
  const services = [...distinctServices(onListener(declared, own), { namespace, unifiedScope }).list];
  const virtualServices = virtualServicesOf(snapshot, MESH_GATEWAY, namespace).filter(({ hosts, object }) =>
    importsFrom(imports, object.metadata.namespace).some((wanted) => hosts.some((host) => hasRoutes(wanted, host))),
  );
  return {
    port: own,
    bind,
    isOpened: captureMode === "NONE",
    services: kept(sidecar, `listener services ${key}`, services, () => services),
    virtualServices: kept(sidecar, `listener routes ${key}`, virtualServices, () => virtualServices),
  };
}

/** A service is called by those of its aliases that are imported too. */
function withImportedAliases(service: Service, hosts: Imports): Service {
  const { aliases = [] } = service;
  const imported = aliases.filter(({ hostname }) => hasService(hosts, hostname));
  if (imported.length === aliases.length) return service;
  return withAliases(imported.map(({ hostname, namespace }) => `${namespace}/${hostname}`).join(), service);
}

const withAliases = derived((names: string, service: Service): Service => {
  const wanted = new Set(names.split(","));
  return { ...service, aliases: (service.aliases ?? []).filter((alias) => wanted.has(serviceKey(alias))) };
});

/** A listener with a port knows that port of its services alone; one for sockets or as an HTTP proxy knows all. */
function onListener(services: readonly Service[], port: ServicePort | undefined): readonly Service[] {
  if (!isPortBound(port)) return services;
  return services.flatMap((service) => withPorts(String(port.port), service) ?? []);
}

function isPortBound(port: ServicePort | undefined): port is ServicePort {
  return port !== undefined && port.port !== 0 && port.protocol !== "HTTP_PROXY";
}

/** The service with some of its ports only; undefined where it has none of them. */
const withPorts = derived((numbers: string, service: Service): Service | undefined => {
  const wanted = numbers.split(",").map(Number);
  const ports = service.ports.filter(({ port }) => wanted.includes(port));
  if (ports.length === 0) return undefined;
  return ports.length === service.ports.length ? service : { ...service, ports };
});

/** Services that the virtual services of a listener lead to: of the own namespace, else of the first that shows it. */
function inferred(snapshot: ScopeSnapshot, listener: EgressListener, namespace: string): readonly Service[] {
  const { port } = listener;
  const found: Service[] = [];
  for (const virtualService of listener.virtualServices) {
    for (const [hostname, ports] of destinationsFrom(namespace, virtualService)) {
      const service = nearest(snapshot, hostname, namespace);
      if (service === undefined) continue;
      const wanted = isPortBound(port) ? [port.port] : ports.has(0) ? [] : [...ports].sort();
      const usable = wanted.length === 0 ? service : withPorts(wanted.join(), service);
      if (usable !== undefined) found.push(usable);
    }
  }
  return found;
}

function nearest(snapshot: ScopeSnapshot, hostname: string, namespace: string): Service | undefined {
  const byNamespace = servicesOfHost(snapshot, hostname);
  const own = byNamespace.get(namespace);
  if (own !== undefined) return own;
  const fallback = snapshot.mesh.defaultServiceExportTo;
  const seen = [...byNamespace.values()].filter(({ exportTo, namespace: home }) =>
    isVisible(exportTo, { home, namespace, fallback }),
  );
  return seen.sort((a, b) => compareText(a.namespace, b.namespace))[0];
}

/** Hosts imported from one namespace, or from all. */
interface Imports {
  readonly exact: Set<string>;
  readonly wildcards: Set<string>;
}

function importsOf(hosts: readonly string[], own: string): ReadonlyMap<string, Imports> {
  const imports = new Map<string, Imports>();
  for (const reference of hosts) {
    const [written = "", host = ""] = reference.split("/");
    const namespace = written === "." ? own : written;
    const known = imports.get(namespace) ?? { exact: new Set(), wildcards: new Set() };
    imports.set(namespace, known);
    (isWildcard(host) ? known.wildcards : known.exact).add(host);
  }
  return imports;
}

function importsFrom(imports: ReadonlyMap<string, Imports>, namespace: string): readonly Imports[] {
  return [imports.get(namespace), imports.get("*")].filter((one) => one !== undefined);
}

function hasService({ exact, wildcards }: Imports, host: string): boolean {
  return exact.has(host) || [...wildcards].some((wildcard) => isSubsetOf(host, wildcard));
}

/** A virtual service counts as soon as one of its hosts could be one of the imported. */
function hasRoutes({ exact, wildcards }: Imports, host: string): boolean {
  if (exact.has(host) || [...wildcards].some((wildcard) => hostsMatch(host, wildcard))) return true;
  return isWildcard(host) && [...exact].some((imported) => hostsMatch(host, imported));
}
