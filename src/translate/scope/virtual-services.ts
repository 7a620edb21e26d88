/** The virtual services that apply to proxies of a namespace, with their names completed. */

import { connectionDestinations, httpDestinations } from "#config/kinds/virtual-service/destinations.ts";
import { gatewaysOf } from "#config/kinds/virtual-service/gateway-name.ts";
import type { HttpRoute, VirtualService } from "#config/kinds/virtual-service/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { completeHost, isWildcard } from "#config/terms/host.ts";
import { oldestFirst } from "#config/terms/precedence.ts";
import { audienceRank, defaultExportTo, isPublic, isVisible } from "#config/terms/visibility.ts";
import { changedSorted, type ListChanges, listChanges } from "#lib/collections/list-changes.ts";
import { compareText } from "#lib/text/compare-text.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { mostSpecific } from "../names/hosts.ts";
import { derived, revised } from "../recipes/indexes.ts";

/** A virtual service whose short names are completed by its namespace. The same object as long as its source is. */
export interface BoundVirtualService {
  readonly object: ConfigObject<VirtualService>;
  readonly hosts: readonly string[];
  /** `mesh`, or `namespace/name` of a Gateway. */
  readonly gateways: readonly string[];
  /** Completes short names of destinations. */
  readonly domain: string;
}

/** Those bound to a gateway and visible to a namespace; what is exported to few comes first, then the oldest. */
export function virtualServicesOf(
  snapshot: Pick<Snapshot, "virtualServices" | "features" | "mesh">,
  gateway: string,
  namespace: string,
): readonly BoundVirtualService[] {
  const { mesh } = snapshot;
  const from = [boundTo(snapshot, gateway)] as const;
  return revised(mesh, { key: `virtual services ${gateway} ${namespace}`, from }, (last) =>
    visibleAfter(listChanges(last?.from[0] ?? NONE, from[0]), last?.value ?? NONE, { namespace, mesh }),
  );
}

/** All that are bound to a gateway, whoever may see them. */
export function boundTo(
  snapshot: Pick<Snapshot, "virtualServices" | "features">,
  gateway: string,
): readonly BoundVirtualService[] {
  return boundByGateway(snapshot).get(gateway) ?? NONE;
}

const NONE: readonly BoundVirtualService[] = [];

type ByGateway = ReadonlyMap<string, readonly BoundVirtualService[]>;

/** Of gateways that a change does not concern the lists are the same as before. */
function boundByGateway({ virtualServices, features }: Pick<Snapshot, "virtualServices" | "features">): ByGateway {
  const from = [virtualServices] as const;
  return revised<typeof from, ByGateway>(features, { key: "virtual services by gateway", from }, (last) => {
    const { removed, added } = listChanges(last?.from[0] ?? [], virtualServices);
    const [gone, fresh] = [removed, added].map((objects) => groupByGateway(objects, features.domain));
    const after = new Map(last?.value);
    for (const gateway of new Set([...(gone?.keys() ?? []), ...(fresh?.keys() ?? [])])) {
      const changes = { removed: gone?.get(gateway) ?? NONE, added: fresh?.get(gateway) ?? NONE };
      const list = changedSorted(after.get(gateway) ?? NONE, changes, byAge);
      if (list.length > 0) after.set(gateway, list);
      else after.delete(gateway);
    }
    return after;
  });
}

function groupByGateway(
  objects: readonly ConfigObject<VirtualService>[],
  domain: string,
): ReadonlyMap<string, BoundVirtualService[]> {
  const byGateway = new Map<string, BoundVirtualService[]>();
  for (const object of objects) {
    const virtualService = bound(domain, object);
    if (virtualService.hosts.length === 0) continue;
    for (const gateway of new Set(virtualService.gateways)) {
      const list = byGateway.get(gateway);
      if (list === undefined) byGateway.set(gateway, [virtualService]);
      else list.push(virtualService);
    }
  }
  return byGateway;
}

function byAge(a: BoundVirtualService, b: BoundVirtualService): number {
  return oldestFirst(a.object, b.object);
}

interface Audience {
  readonly namespace: string;
  readonly mesh: MeshConfig;
}

function visibleAfter(
  { removed, added }: ListChanges<BoundVirtualService>,
  before: readonly BoundVirtualService[],
  { namespace, mesh }: Audience,
): readonly BoundVirtualService[] {
  const fallback = defaultExportTo(mesh.defaultVirtualServiceExportTo);
  const isSeen = ({ object: { spec, metadata } }: BoundVirtualService) =>
    isVisible(spec.exportTo, { home: metadata.namespace, namespace, fallback });
  const rank = ({ object: { spec, metadata } }: BoundVirtualService) =>
    audienceRank({ home: metadata.namespace, isPublic: isPublic(spec.exportTo, fallback) }, namespace);
  const changes = { removed: removed.filter(isSeen), added: added.filter(isSeen) };
  return changedSorted(before, changes, (a, b) => rank(a) - rank(b) || byAge(a, b));
}

const bound = derived((domain: string, object: ConfigObject<VirtualService>): BoundVirtualService => {
  const { namespace } = object.metadata;
  return {
    object,
    hosts: (object.spec.hosts ?? []).map((host) => completeHost(host, namespace, domain)),
    gateways: gatewaysOf(object.spec, namespace),
    domain,
  };
});

/** Finds the virtual service that speaks for a host: the one that names it, else the one with the longest wildcard. */
export interface VirtualServiceFinder {
  find(host: string): BoundVirtualService | undefined;
}

/** The first virtual service of each host wins, so the list has to be in order of precedence. */
export function finderOf(virtualServices: readonly BoundVirtualService[]): VirtualServiceFinder {
  return finder("", virtualServices);
}

const finder = derived((_: string, virtualServices: readonly BoundVirtualService[]): VirtualServiceFinder => {
  const exact = new Map<string, BoundVirtualService>();
  const wildcards = new Map<string, BoundVirtualService>();
  for (const virtualService of virtualServices) {
    for (const host of virtualService.hosts) {
      const map = isWildcard(host) ? wildcards : exact;
      if (!map.has(host)) map.set(host, virtualService);
    }
  }
  return { find: (host) => mostSpecific(host, exact, wildcards) };
});

/** A set of labels that a match demands of the calling workload. */
export interface SourceCondition {
  /** Stands for the labels in views and inputs. */
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** All label conditions on callers in the mesh, each once. The same list as long as virtual services with conditions are. */
export function sourceConditions({ virtualServices, features }: Snapshot): readonly SourceCondition[] {
  const from = [virtualServices] as const;
  return revised<typeof from, readonly SourceCondition[]>(features, { key: "source conditions", from }, (last) => {
    const { removed, added } = listChanges(last?.from[0] ?? [], virtualServices);
    const isConcerned = [...removed, ...added].some((object) => conditionsOf("", object).length > 0);
    if (last !== undefined && !isConcerned) return last.value;
    const all = virtualServices.flatMap((object) => conditionsOf("", object));
    return [...new Map(all.map((condition) => [condition.id, condition])).values()];
  });
}

const conditionsOf = derived((_: string, { spec }: ConfigObject<VirtualService>): readonly SourceCondition[] => {
  const routes = [...(spec.http ?? []), ...(spec.tls ?? []), ...(spec.tcp ?? [])];
  const labels = routes.flatMap(({ match = [] }) => match.map(({ sourceLabels }) => sourceLabels));
  const demanded = labels.filter((one) => one !== undefined);
  return demanded.length === 0 ? UNCONDITIONAL : demanded.map((one) => ({ id: sourceConditionId(one), labels: one }));
});

const UNCONDITIONAL: readonly SourceCondition[] = [];

/** The hosts that a virtual service leads to from a namespace, each with the ports that it names; 0 is any port. */
export const destinationsFrom = derived((namespace: string, { object, domain }: BoundVirtualService) => {
  const { spec, metadata } = object;
  const fits = ({ match = [] }: HttpRoute) => {
    const named = match.flatMap(({ sourceNamespace }) => sourceNamespace || []);
    return named.length === 0 || named.includes(namespace);
  };
  const all = [...(spec.http ?? []).filter(fits).flatMap(httpDestinations), ...connectionDestinations(spec)];
  const found = new Map<string, Set<number>>();
  for (const { host, port } of all) {
    const hostname = completeHost(host, metadata.namespace, domain);
    found.set(hostname, (found.get(hostname) ?? new Set()).add(port?.number ?? 0));
  }
  return found;
});

/** The same text for the same labels, in whatever order they were written. */
export function sourceConditionId(labels: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(labels).sort(([a], [b]) => compareText(a, b)));
}
