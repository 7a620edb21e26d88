/** What a new snapshot cannot have changed: most are about the endpoints of one service, and only endpoints depend on those. */

import type { DestinationRule } from "#config/kinds/destination-rule/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { type EndpointSet, NO_ENDPOINTS } from "#model/service/endpoint.ts";
import { type Service, type ServiceKey, serviceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { changedKeys } from "../recipes/changed-keys.ts";
import { derived } from "../recipes/indexes.ts";
import { servicesInScope } from "../scope/egress.ts";
import type { EndpointsView } from "./views.ts";

/** Whether each view has the same plan at both snapshots, though endpoints that plans do not depend on may differ. */
export const haveSamePlans = derived((_: string, before: Snapshot, after: Snapshot): boolean => {
  const { version, endpoints, workloads, ...others } = after;
  if (!hasAll(before, others) || passesThrough("", after.destinationRules)) return false;
  const changed = changedKeys("", before.endpoints, after.endpoints);
  const isPlanned = (key: ServiceKey) => {
    const identities = ({ endpoints }: Snapshot) => (endpoints.get(key) ?? NO_ENDPOINTS).identities;
    return !onlyStatic("", after.services).has(key) || identities(before) !== identities(after);
  };
  return !changed.keys().some(isPlanned);
});

/** Tells the clusters whose endpoints may be others for a view than at the snapshot before. */
export function changedEndpoints(before: Snapshot, after: Snapshot, view: EndpointsView): (cluster: string) => boolean {
  const { version, services, endpoints, workloads, virtualServices, ...others } = after;
  if (!hasAll(before, others)) return () => true;
  const [old, next] = [servicesInScope(before, view).byHost, servicesInScope(after, view).byHost];
  const changed = changedHosts("", before.endpoints, after.endpoints);
  if (old === next && changed.size === 0) return () => false;
  return (cluster) => {
    const host = hostOf(cluster);
    return changed.has(host) || (old !== next && old.get(host) !== next.get(host));
  };
}

/** What stands last in the name of a cluster, in whichever form: all names that a view has are looked at for each change. */
function hostOf(cluster: string): string {
  const bar = cluster.lastIndexOf("|");
  return cluster.slice(bar === -1 ? cluster.lastIndexOf("_.") + 2 : bar + 1);
}

function hasAll(snapshot: Snapshot, fields: Partial<Snapshot>): boolean {
  return Object.entries(fields).every(([field, value]) => Reflect.get(snapshot, field) === value);
}

type Sets = ReadonlyMap<ServiceKey, EndpointSet>;

const changedHosts = derived(
  (_: string, before: Sets, after: Sets) =>
    new Set(
      changedKeys("", before, after)
        .keys()
        .map((key) => key.slice(key.indexOf("/") + 1)),
    ),
);

/** Services that have endpoints and nothing else by them, as listeners of services without address have. */
const onlyStatic = derived((_: string, services: readonly Service[]): ReadonlySet<ServiceKey> => {
  const others = new Set(services.filter(({ resolution }) => resolution !== "static").map(serviceKey));
  return new Set(services.map(serviceKey)).difference(others);
});

/** Whether clusters somewhere lead to the address that was called: their TLS depends on all endpoints. */
const passesThrough = derived((_: string, rules: readonly ConfigObject<DestinationRule>[]) =>
  rules
    .flatMap(({ spec }) => [spec, ...(spec.subsets ?? [])])
    .flatMap(({ trafficPolicy }) => [trafficPolicy, ...(trafficPolicy?.portLevelSettings ?? [])])
    .some((policy) => policy?.loadBalancer?.simple === "PASSTHROUGH"),
);
