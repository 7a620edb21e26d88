/** Where the routes of a VirtualService lead. */
import type { Destination, HttpRoute, VirtualService } from "./schema.ts";

/** All destinations of a route: those it chooses among, then those that get a copy. */
export function httpDestinations({ route = [], mirror, mirrors = [] }: HttpRoute): readonly Destination[] {
  return [
    ...route.map(({ destination }) => destination),
    ...(mirror === undefined ? [] : [mirror]),
    ...mirrors.map(({ destination }) => destination),
  ];
}

/** Destinations of connections that are not understood as HTTP. */
export function connectionDestinations({ tls = [], tcp = [] }: VirtualService): readonly Destination[] {
  return [...tls, ...tcp].flatMap(({ route = [] }) => route.map(({ destination }) => destination));
}

/** Those of all routes. */
export function destinationsOf(spec: VirtualService): readonly Destination[] {
  return [...(spec.http ?? []).flatMap(httpDestinations), ...connectionDestinations(spec)];
}
