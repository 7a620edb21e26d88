/**
 * What the configuration refers to without it being there: a host, a subset, a gateway, a delegate. Usually it is still on its way,
 * in the same `apply`.
 */
import type { ConfigObject } from "#config/config-object.ts";
import { objectKey } from "#config/config-object.ts";
import { completeHost, hostsMatch, isWildcard } from "#config/host.ts";
import type { Destination, VirtualService } from "#config/kinds/virtual-service.ts";
import type { Snapshot } from "#model/snapshot.ts";

/** One text for each reference that leads nowhere. A snapshot is asked about again when the next one comes. */
export function unresolvedReferences(snapshot: Snapshot): ReadonlySet<string> {
  const known = UNRESOLVED.get(snapshot);
  if (known !== undefined) return known;
  const targets = targetsOf(snapshot);
  const found = new Set<string>();
  for (const object of snapshot.virtualServices) {
    for (const reference of keptReferences(object, snapshot.features.domain)) {
      if (!isKnown(reference, targets)) found.add(`${objectKey(object)} ${reference.kind} ${reference.name}`);
    }
  }
  UNRESOLVED.set(snapshot, found);
  return found;
}

const UNRESOLVED = new WeakMap<Snapshot, ReadonlySet<string>>();

/** Objects live longer than snapshots. */
const REFERENCES = new WeakMap<object, { readonly domain: string; readonly references: readonly Reference[] }>();

function keptReferences(object: ConfigObject<VirtualService>, domain: string): readonly Reference[] {
  const known = REFERENCES.get(object);
  if (known?.domain === domain) return known.references;
  const references = referencesOf(object, domain);
  REFERENCES.set(object, { domain, references });
  return references;
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

function targetsOf(snapshot: Snapshot): Targets {
  const { services, destinationRules, gateways, features } = snapshot;
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
    .filter((gateway) => gateway !== "mesh")
    .map((gateway) => (gateway.includes("/") ? gateway : `${metadata.namespace}/${gateway}`));
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

function destinationsOf({ http = [], tls = [], tcp = [] }: VirtualService): readonly Destination[] {
  const routes = [...http, ...tls, ...tcp].flatMap(({ route = [] }) => route.map(({ destination }) => destination));
  const mirrors = http.flatMap(({ mirror, mirrors: list = [] }) => [
    mirror,
    ...list.map(({ destination }) => destination),
  ]);
  return [...routes, ...mirrors.filter((mirror) => mirror !== undefined)];
}
