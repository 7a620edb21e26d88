/** Objects that would expand to more configuration than proxies can take. */

import { error, type Problem } from "../schema/problem.ts";
import type { DestinationRule } from "./destination-rule/schema.ts";
import { expandedRouteBytes, MAX_EXPANDED_BYTES, MAX_EXPANDED_ENTRIES, MAX_EXPANDED_LISTENERS } from "./expansion.ts";
import type { ServiceEntry } from "./service-entry/schema.ts";
import type { VirtualService } from "./virtual-service/schema.ts";

/** Routes are written out for each of their matches, and again for each host. */
export function* checkRouteExpansion({ hosts = [], http = [] }: VirtualService): Iterable<Problem> {
  let total = 0;
  for (const [i, route] of http.entries()) {
    const bytes = expandedRouteBytes(route);
    if (bytes > MAX_EXPANDED_BYTES)
      yield tooLarge(`spec.http[${i}]`, {
        bytes,
        most: MAX_EXPANDED_BYTES,
        reason: "each match gets a copy of its route",
      });
    total += bytes;
  }
  const bytes = total * Math.max(1, hosts.length);
  if (bytes > MAX_EXPANDED_BYTES && total <= MAX_EXPANDED_BYTES)
    yield tooLarge("spec.hosts", { bytes, most: MAX_EXPANDED_BYTES, reason: "each host gets a copy of all routes" });
}

/** The policy of all subsets is written out for each of them. */
export function* checkSubsetExpansion({ subsets = [], trafficPolicy = {} }: DestinationRule): Iterable<Problem> {
  const bytes = subsets.length * JSON.stringify(trafficPolicy).length;
  const most = MAX_EXPANDED_BYTES / 4; // each port of the service has them again
  if (bytes > most) yield tooLarge("spec.subsets", { bytes, most, reason: "each subset gets a copy of the policy" });
}

/** A cluster costs as much as so many endpoints. */
const CLUSTER_ENTRIES = 10;

/** Each port of each host is a cluster with all endpoints; each port at each address can be a listener. */
export function* checkServiceExpansion(spec: ServiceEntry): Iterable<Problem> {
  const { hosts, ports = [], addresses = [], endpoints = [], subjectAltNames = [] } = spec;
  const clusters = hosts.length * ports.length;
  const entries = clusters * Math.max(CLUSTER_ENTRIES, endpoints.length + subjectAltNames.length);
  if (entries > MAX_EXPANDED_ENTRIES) {
    yield error(
      "spec.hosts",
      `would expand to ${entries} entries, since each port of each host gets all endpoints: at most ${MAX_EXPANDED_ENTRIES} are supported`,
    );
  }
  const listeners = ports.length * addresses.length;
  if (listeners > MAX_EXPANDED_LISTENERS) {
    yield error(
      "spec.addresses",
      `would expand to ${listeners} listeners, since each address has all ports: at most ${MAX_EXPANDED_LISTENERS} are supported`,
    );
  }
}

interface Excess {
  readonly bytes: number;
  readonly most: number;
  readonly reason: string;
}

function tooLarge(at: string, { bytes, most, reason }: Excess): Problem {
  const [size, limit] = [bytes, most].map((amount) => `${Math.ceil(amount / 1024 / 1024)} MiB`);
  return error(at, `would expand to about ${size} for each proxy, since ${reason}: at most ${limit} are supported`);
}
