/**
 * A virtual service may leave the routes of some requests to another one, which has no hosts of its own. Here the two become
 * one, so that nobody further on knows about delegates.
 */

import { expandedRouteBytes, MAX_EXPANDED_BYTES } from "#config/kinds/expansion.ts";
import { delegateName, delegateProblem, hasHosts } from "#config/kinds/virtual-service/delegate.ts";
import { completeGateway } from "#config/kinds/virtual-service/gateway-name.ts";
import type {
  Destination,
  HttpMatch,
  HttpRoute,
  StringMatch,
  VirtualService,
} from "#config/kinds/virtual-service/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { completeHost } from "#config/terms/host.ts";
import { replacements, withReplacements } from "#lib/collections/list-changes.ts";
import { memoized } from "../identity/memo.ts";

type VirtualServiceObject = ConfigObject<VirtualService>;

/** What a route with a delegate takes from it where the delegate says nothing itself. */
const INHERITED = [
  "rewrite",
  "directResponse",
  "timeout",
  "retries",
  "fault",
  "mirror",
  "mirrorPercent",
  "mirrorPercentage",
  "corsPolicy",
  "mirrors",
  "headers",
] as const satisfies readonly (keyof HttpRoute)[];

/** What delegates are looked up by. */
export interface DelegateRules {
  /** Who sees a virtual service that does not say it itself. */
  readonly exportTo: readonly string[];
  /** Completes the short names of a delegate, which mean its own namespace. */
  readonly domain: string;
}

interface Joined {
  readonly objects: readonly VirtualServiceObject[];
  readonly rules: DelegateRules;
  readonly joined: readonly VirtualServiceObject[];
}

const last = new WeakMap<object, Joined>();

/** As `joinDelegates`. Where what was replaced since the last time that `owner` asked has to do with no delegate, the rest is as it was. */
export function joinedVirtualServices(
  owner: object,
  objects: readonly VirtualServiceObject[],
  rules: DelegateRules,
): readonly VirtualServiceObject[] {
  const known = last.get(owner);
  const joined = (known && afterReplacements(known, objects, rules)) ?? joinDelegates(objects, rules);
  last.set(owner, { objects, rules, joined });
  return joined;
}

function afterReplacements(
  { objects: before, rules: { exportTo, domain }, joined }: Joined,
  objects: readonly VirtualServiceObject[],
  rules: DelegateRules,
): readonly VirtualServiceObject[] | undefined {
  if (rules.exportTo !== exportTo || rules.domain !== domain) return undefined;
  const replaced = replacements(before, objects);
  return replaced?.flat().every(isAlone) ? withReplacements(joined, replaced) : undefined;
}

/** Whether it neither is a delegate nor has one. */
function isAlone(object: VirtualServiceObject): boolean {
  return hasHosts(object) && !(object.spec.http ?? []).some(({ delegate }) => delegate !== undefined);
}

/**
 * The virtual services with hosts, each with the routes of its delegates. A route whose delegate is not there, or not
 * visible, stays with its conditions alone: it has nowhere to go.
 */
export function joinDelegates(objects: readonly VirtualServiceObject[], rules: DelegateRules): VirtualServiceObject[] {
  const [roots, delegates] = [objects.filter(hasHosts), objects.filter((object) => !hasHosts(object))];
  const byName = new Map(delegates.map((object) => [`${object.metadata.namespace}/${object.metadata.name}`, object]));
  return roots.map((root) => {
    const routes = root.spec.http ?? [];
    if (!routes.some(({ delegate }) => delegate !== undefined)) return root;
    const { namespace } = root.metadata;
    const found = routes.map((route) => byName.get(delegateName(route, namespace) ?? ""));
    const usable = found.map((delegate) =>
      delegateProblem(delegate, { namespace, fallback: rules.exportTo }) === undefined ? delegate : undefined,
    );
    return joined(root, usable, rules.domain);
  });
}

const joined = memoized(
  (root: VirtualServiceObject, delegates: readonly (VirtualServiceObject | undefined)[], domain: string) => {
    let left = MAX_EXPANDED_BYTES / Math.max(1, root.spec.hosts?.length ?? 0);
    const http = completeNames(root, domain).flatMap((route, i) => {
      const delegate = delegates[i];
      if (delegate !== undefined) left -= joinedBytes(route, delegate);
      if (delegate !== undefined && left >= 0) return joinRoutes(route, completeNames(delegate, domain));
      return route.delegate === undefined ? [route] : [leadingNowhere(route)];
    });
    return { ...root, spec: { ...root.spec, http } };
  },
);

/** Each match of a root is joined with each of a delegate; a delegate that would make the routes too large leads nowhere. */
function joinedBytes(root: HttpRoute, delegate: VirtualServiceObject): number {
  const routes = (delegate.spec.http ?? []).reduce((sum, route) => sum + expandedRouteBytes(route), 0);
  return Math.max(1, root.match?.length ?? 0) * (routes + (delegate.spec.http ?? []).length * expandedRouteBytes(root));
}

/** What the delegate would have inherited, such as a mirror, leads nowhere either. */
function leadingNowhere({ name, match, delegate }: HttpRoute): HttpRoute {
  return withoutUnset({ name, match, delegate });
}

/** The routes of a delegate under the conditions of the route that names it; those that contradict it are left out. */
export function joinRoutes(root: HttpRoute, routes: readonly HttpRoute[]): HttpRoute[] {
  return routes.flatMap((route) => {
    const match = joinMatches(root.match ?? [], route.match ?? []);
    if (match === undefined) return [];
    const inherited = Object.fromEntries(
      INHERITED.flatMap((field) => (root[field] === undefined ? [] : [[field, root[field]]])),
    );
    const name = joinNames(root.name, route.name);
    return withoutUnset({ ...inherited, ...route, match: match.length > 0 ? match : undefined, name });
  });
}

/**
 * The conditions of a delegate under those of its root. Each of them needs a condition of the root that it is a case of,
 * else they contradict each other: undefined.
 */
export function joinMatches(
  roots: readonly HttpMatch[],
  leaves: readonly HttpMatch[],
): readonly HttpMatch[] | undefined {
  if (roots.length === 0) return leaves;
  if (leaves.length === 0) return roots;
  const found = leaves.map((leaf) =>
    roots.filter((root) => !contradicts(root, leaf)).map((root) => joinMatch(root, leaf)),
  );
  return found.every((matches) => matches.length > 0) ? found.flat() : undefined;
}

/** Whether no request meets both, or the leaf is not a case of the root. */
export function contradicts(root: HttpMatch, leaf: HttpMatch): boolean {
  return (
    (["uri", "scheme", "method", "authority"] as const).some((field) => isOtherText(root[field], leaf[field])) ||
    (["headers", "withoutHeaders", "queryParams"] as const).some((field) =>
      Object.entries(leaf[field] ?? {}).some(([name, match]) => isOtherText(own(root[field], name), match)),
    ) ||
    (root.ignoreUriCase ?? false) !== (leaf.ignoreUriCase ?? false) ||
    (Boolean(root.port) && Boolean(leaf.port) && root.port !== leaf.port) ||
    ((root.sourceNamespace ?? "") !== "" && root.sourceNamespace !== leaf.sourceNamespace) ||
    Object.entries(leaf.sourceLabels ?? {}).some(
      ([name, value]) => (own(root.sourceLabels, name) ?? value) !== value,
    ) ||
    hasOtherGateways(root.gateways ?? [], leaf.gateways ?? [])
  );
}

function hasOtherGateways(roots: readonly string[], leaves: readonly string[]): boolean {
  return roots.length > 0 && leaves.some((gateway) => !roots.includes(gateway));
}

/** Whether some text fits the leaf but not the root. Of regular expressions that cannot be told. */
function isOtherText(root: StringMatch | undefined, leaf: StringMatch | undefined): boolean {
  if (root === undefined || leaf === undefined) return false;
  if (root.exact) return leaf.exact !== root.exact;
  const text = leaf.prefix || leaf.exact;
  return !(root.prefix && text && !leaf.regex && text.startsWith(root.prefix));
}

function joinMatch(root: HttpMatch, leaf: HttpMatch): HttpMatch {
  const set = Object.fromEntries(Object.entries(leaf).filter(([, value]) => isGiven(value)));
  return withoutUnset({
    ...root,
    ...set,
    name: joinNames(root.name, leaf.name),
    headers: joinMaps(root.headers, leaf.headers),
    withoutHeaders: joinMaps(root.withoutHeaders, leaf.withoutHeaders),
    queryParams: joinMaps(root.queryParams, leaf.queryParams),
    sourceLabels: joinMaps(root.sourceLabels, leaf.sourceLabels),
    ignoreUriCase: leaf.ignoreUriCase,
  });
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== "" && value !== 0 && !(Array.isArray(value) && value.length === 0);
}

function joinNames(root: string | undefined, leaf: string | undefined): string | undefined {
  return root && leaf ? `${root}-${leaf}` : leaf || root;
}

function joinMaps<T>(
  root: Readonly<Record<string, T>> | undefined,
  leaf: Readonly<Record<string, T>> | undefined,
): Readonly<Record<string, T>> | undefined {
  return root === undefined || leaf === undefined ? (leaf ?? root) : { ...root, ...leaf };
}

function withoutUnset<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as T;
}

function own<T>(map: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return map !== undefined && Object.hasOwn(map, name) ? map[name] : undefined;
}

/** Routes with complete names, since root and delegate may live in different namespaces. */
function completeNames({ spec, metadata: { namespace } }: VirtualServiceObject, domain: string): HttpRoute[] {
  const complete = <T extends Destination>(destination: T): T => ({
    ...destination,
    host: completeHost(destination.host, namespace, domain),
  });
  return (spec.http ?? []).map((route) =>
    withoutUnset({
      ...route,
      match: route.match?.map((match) =>
        withoutUnset({ ...match, gateways: match.gateways?.map((gateway) => completeGateway(gateway, namespace)) }),
      ),
      route: route.route?.map((entry) => ({ ...entry, destination: complete(entry.destination) })),
      mirror: route.mirror && complete(route.mirror),
      mirrors: route.mirrors?.map((entry) => ({ ...entry, destination: complete(entry.destination) })),
    }),
  );
}
