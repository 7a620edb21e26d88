/**
 * What the configuration refers to without it being there: a host, a subset, a gateway, a delegate. Usually it is still on its way,
 * in the same `apply`.
 */

import { destinationsOf } from "#config/kinds/virtual-service/destinations.ts";
import { completeGateway, MESH_GATEWAY } from "#config/kinds/virtual-service/gateway-name.ts";
import type { VirtualService } from "#config/kinds/virtual-service/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { objectKey } from "#config/schema/config-object.ts";
import { completeHost, hostsMatch, isWildcard } from "#config/terms/host.ts";
import { listChanges } from "#lib/collections/list-changes.ts";
import type { Snapshot } from "#model/snapshot.ts";

/** Whether something in the configuration leads nowhere that did not before. */
export function hasNewUnresolved(before: Snapshot | undefined, after: Snapshot): boolean {
  if (before === undefined) return unresolvedReferences(after).size > 0;
  const [old, next] = [targetsOf(before), targetsOf(after)];
  // Where all that could be referred to is still there, only new objects can lead nowhere.
  const all = old === next || KINDS.every((kind) => old[kind].isSubsetOf(next[kind]));
  if (!all) return !unresolvedReferences(after).isSubsetOf(unresolvedReferences(before));
  const { removed, added } = listChanges(before.virtualServices, after.virtualServices);
  return !unresolvedOf(added, after).isSubsetOf(unresolvedOf(removed, before));
}

/** One text for each reference that leads nowhere. */
export function unresolvedReferences(snapshot: Snapshot): ReadonlySet<string> {
  return unresolvedOf(snapshot.virtualServices, snapshot);
}

function unresolvedOf(objects: Snapshot["virtualServices"], snapshot: Snapshot): ReadonlySet<string> {
  const targets = targetsOf(snapshot);
  const found = new Set<string>();
  for (const object of objects) {
    for (const reference of referencesOf(object, snapshot.features.domain)) {
      if (!isKnown(reference, targets)) found.add(`${objectKey(object)} ${reference.kind} ${reference.name}`);
    }
  }
  return found;
}

interface Reference {
  readonly kind: "host" | "subset" | "gateway" | "delegate";
  /** Hosts complete; subsets as `host subset`; gateways as `namespace/name`; delegates as written. */
  readonly name: string;
}

interface Targets {
  readonly host: ReadonlySet<string>;
  readonly subset: ReadonlySet<string>;
  readonly gateway: ReadonlySet<string>;
  readonly wildcardHosts: readonly string[];
}

const KINDS = ["host", "subset", "gateway"] as const;

/** Most changes are of something else. */
const TARGETS = new WeakMap<Snapshot["services"], { readonly from: readonly unknown[]; readonly targets: Targets }>();

function targetsOf(snapshot: Snapshot): Targets {
  const { services, destinationRules, gateways, features } = snapshot;
  const from = [destinationRules, gateways, features];
  const known = TARGETS.get(services);
  if (known?.from.every((one, i) => one === from[i])) return known.targets;
  const targets = newTargets(snapshot);
  TARGETS.set(services, { from, targets });
  return targets;
}

function newTargets({ services, destinationRules, gateways, features }: Snapshot): Targets {
  const hosts = services.map(({ hostname }) => hostname);
  const subsets = destinationRules.flatMap(({ spec, metadata }) => {
    const host = completeHost(spec.host, metadata.namespace, features.domain);
    return (spec.subsets ?? []).map(({ name }) => `${host} ${name}`);
  });
  return {
    host: new Set(hosts),
    subset: new Set(subsets),
    gateway: new Set(gateways.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)),
    wildcardHosts: hosts.filter(isWildcard),
  };
}

function isKnown({ kind, name }: Reference, targets: Targets): boolean {
  if (kind === "delegate") return false; // one that is there is part of its root
  return targets[kind].has(name) || (kind === "host" && targets.wildcardHosts.some((host) => hostsMatch(host, name)));
}

function referencesOf({ spec, metadata }: ConfigObject<VirtualService>, domain: string): readonly Reference[] {
  const gateways = (spec.gateways ?? [])
    .filter((gateway) => gateway !== MESH_GATEWAY)
    .map((gateway) => completeGateway(gateway, metadata.namespace));
  const destinations = destinationsOf(spec).flatMap(({ host, subset }): Reference[] => {
    const complete = completeHost(host, metadata.namespace, domain);
    const ofHost = { kind: "host", name: complete } as const;
    return subset === undefined || subset === ""
      ? [ofHost]
      : [ofHost, { kind: "subset", name: `${complete} ${subset}` }];
  });
  const delegates = (spec.http ?? []).flatMap(({ delegate }) => (delegate === undefined ? [] : (delegate.name ?? "")));
  return [
    ...gateways.map((name) => ({ kind: "gateway", name }) as const),
    ...delegates.map((name) => ({ kind: "delegate", name }) as const),
    ...destinations,
  ];
}
