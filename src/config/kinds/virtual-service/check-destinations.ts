/** Where routes send traffic. */

import { checkNotNegative } from "../../checks/amounts.ts";
import { checkDnsLabel, checkHost } from "../../checks/names.ts";
import { checkPort } from "../../checks/network.ts";
import { error, type Problem } from "../../schema/problem.ts";
import { checkHeaders } from "./check-headers.ts";
import type { Destination, HttpRouteDestination, RouteDestination } from "./schema.ts";

/** A host, and perhaps a subset and a port of it. */
export function* checkDestination(destination: Destination | undefined, at: string): Iterable<Problem> {
  if (destination === undefined) return;
  const { host, subset = "", port } = destination;
  if (host === "*") yield error(`${at}.host`, `must be the name of a service, not "*"`);
  else yield* checkHost(host, `${at}.host`);
  if (subset !== "") yield* checkDnsLabel(subset, `${at}.subset`);
  if (port !== undefined) yield* checkPort(port.number ?? 0, `${at}.port.number`);
}

/** Destinations of a route with their weights, which must not all be 0. */
export function* checkRouteDestinations(
  destinations: readonly (RouteDestination | HttpRouteDestination)[],
  at: string,
): Iterable<Problem> {
  for (const [i, entry] of destinations.entries()) {
    yield* checkDestination(entry.destination, `${at}[${i}].destination`);
    yield* checkNotNegative(entry.weight, `${at}[${i}].weight`);
    if ("headers" in entry) yield* checkHeaders(entry.headers, `${at}[${i}].headers`);
  }
  const total = destinations.reduce((sum, { weight = 0 }) => sum + weight, 0);
  if (destinations.length > 1 && total === 0) yield error(at, "needs a weight above 0: all weights are 0");
}
