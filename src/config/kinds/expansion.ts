/**
 * How much configuration objects expand to. Envoy wants some things written out again for each of others, such as all routes
 * for each host, so that a small object can stand for gigabytes.
 */
import type { HttpRoute } from "./virtual-service/schema.ts";

/** Bytes that one object may expand to, for each proxy; estimated, not exact. */
export const MAX_EXPANDED_BYTES = 16 * 1024 * 1024;
/** Clusters and endpoints that a ServiceEntry may expand to. */
export const MAX_EXPANDED_ENTRIES = 100_000;
/** Listeners that a ServiceEntry may expand to; they cost more. */
export const MAX_EXPANDED_LISTENERS = 10_000;

/** What Envoy needs for a route beside what the user has written. */
const ROUTE_BYTES = 100;

const actions = new WeakMap<HttpRoute, number>();

/** A route is written out for each of its matches. */
export function expandedRouteBytes(route: HttpRoute): number {
  const known = actions.get(route);
  if (known !== undefined) return known;
  const { match = [], ...action } = route;
  const copies = Math.max(1, match.length);
  const bytes = copies * (ROUTE_BYTES + JSON.stringify(action).length) + JSON.stringify(match).length;
  actions.set(route, bytes);
  return bytes;
}
