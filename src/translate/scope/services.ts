/** The services that proxies of a namespace can reach. */

import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import { byAge } from "#config/terms/precedence.ts";
import { byAudience, isPublic, isVisible } from "#config/terms/visibility.ts";
import { hasSameItems } from "#lib/collections/same-items.ts";
import type { Features } from "#model/features.ts";
import type { Service, ServicePort } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { derived } from "../recipes/indexes.ts";

/** Services visible to one namespace; each host name once. */
export interface VisibleServices {
  readonly list: readonly Service[];
  readonly byHost: ReadonlyMap<string, Service>;
}

/** Who looks: gateways give no preference to what is declared in their own namespace. */
export interface Viewpoint {
  readonly role: "sidecar" | "router";
  readonly namespace: string;
}

/**
 * What a proxy can reach. One host may be declared by several objects: a sidecar's own namespace comes first, then
 * Kubernetes services (nobody can take a service's name by a ServiceEntry), then the oldest.
 */
export function visibleServices(
  { services, mesh, features }: Pick<Snapshot, "services" | "mesh" | "features">,
  { role, namespace }: Viewpoint,
): VisibleServices {
  if (role === "router") return visibleToRouters(namespace, services, mesh);
  return visibleToSidecars(namespace, services, mesh, features);
}

/** All services of a host, by namespace, whoever may see them. */
export function servicesOfHost(snapshot: Pick<Snapshot, "services">, hostname: string): ReadonlyMap<string, Service> {
  return byHostAndNamespace("", snapshot.services).get(hostname) ?? NO_SERVICES;
}

const NO_SERVICES: ReadonlyMap<string, Service> = new Map();

/** All declarations of services that a namespace sees: those for few namespaces first, then the oldest. */
export function declarationsFor(snapshot: Pick<Snapshot, "services" | "mesh">, namespace: string): readonly Service[] {
  return seenBy(namespace, snapshot.services, snapshot.mesh);
}

const visibleToSidecars = derived(
  (namespace: string, services: readonly Service[], mesh: MeshConfig, { unifiedScope }: Features) =>
    distinctServices(seenBy(namespace, services, mesh), { namespace, unifiedScope }),
);
const visibleToRouters = derived((namespace: string, services: readonly Service[], mesh: MeshConfig) =>
  distinctServices(seenBy(namespace, services, mesh)),
);

const seenBy = derived((namespace: string, services: readonly Service[], mesh: MeshConfig) => {
  const fallback = mesh.defaultServiceExportTo;
  const seen = services.filter(({ exportTo, namespace: home }) => isVisible(exportTo, { home, namespace, fallback }));
  const sorted = seen.sort(byAge);
  return byAudience(sorted, namespace, ({ namespace: home, exportTo }) => ({
    home,
    isPublic: isPublic(exportTo, fallback),
  }));
});

/** What sidecars prefer, beside their own namespace. */
export interface Preference {
  readonly namespace: string;
  /** Kubernetes services before entries of other namespaces, else whichever comes first. */
  readonly unifiedScope: boolean;
}

/** Each host once; the declaration of the preferred namespace is taken before any other. */
export function distinctServices(declarations: readonly Service[], preferred?: Preference): VisibleServices {
  const byHost = new Map<string, Service>();
  for (const service of declarations) {
    const known = byHost.get(service.hostname);
    const next = known === undefined ? service : chosen(known, service, preferred);
    // One of another namespace comes in its own turn, not in that of the one it replaces.
    if (known !== undefined && next.namespace !== known.namespace) byHost.delete(service.hostname);
    byHost.set(service.hostname, next);
  }
  return { list: [...byHost.values()], byHost };
}

const byHostAndNamespace = derived((_: string, services: readonly Service[]) => {
  const found = new Map<string, Map<string, Service>>();
  for (const service of [...services].sort(byAge)) {
    const namespaces = found.get(service.hostname) ?? new Map<string, Service>();
    found.set(service.hostname, namespaces);
    const known = namespaces.get(service.namespace);
    if (known === undefined || (known.registry !== "Kubernetes" && service.registry === "Kubernetes")) {
      namespaces.set(service.namespace, service);
    }
  }
  return found;
});

function chosen(known: Service, other: Service, preferred: Preference | undefined): Service {
  if (known.namespace !== other.namespace) {
    if (known.namespace === preferred?.namespace) return known;
    if (other.namespace === preferred?.namespace) return other;
    if (preferred?.unifiedScope === false) return known;
    return known.registry !== "Kubernetes" && other.registry === "Kubernetes" ? other : known;
  }
  if (known.registry !== other.registry) return known.registry === "Kubernetes" ? known : other;
  return isSameKind(known, other) ? joined("", known, other) : known;
}

/** Two objects may add ports and addresses to one host when nothing else tells them apart. */
function isSameKind(a: Service, b: Service): boolean {
  return a.resolution === b.resolution && sameText(a.labels, b.labels) && sameText(a.exportTo, b.exportTo);
}

function sameText(a: object, b: object): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

const joined = derived((_: string, known: Service, other: Service): Service => {
  const taken = new Set(known.ports.map(({ port }) => port));
  const added: ServicePort[] = other.ports.filter(({ port }) => !taken.has(port));
  if (added.length === 0 && hasSameItems(known.addresses, other.addresses)) return known;
  const addresses = [...new Set([...known.addresses, ...other.addresses])];
  const { declarations = [known] } = known;
  return { ...known, addresses, ports: [...known.ports, ...added], declarations: [...declarations, other] };
});
