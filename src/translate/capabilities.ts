/**
 * What a proxy can do without. An Envoy rejects a listener for one filter that it does not have, and with the listener all that
 * is right in it; so filters that it lacks are left out where requests pass as they should without them.
 *
 * Filters that decide who may pass (RBAC, JWT, external authorization) are not in the table: they are sent, and an Envoy without
 * them keeps what it had. Whatever else is generated, every Envoy from 1.28 on has (`old-proxy.test.ts` holds it).
 */
import type { Proxy as MeshProxy } from "#model/proxy.ts";

/** Filters by name, each with what is lost without it. */
const DISPENSABLE: Readonly<Record<string, string>> = {
  "envoy.filters.http.cors": "policies for requests of other origins",
  "envoy.filters.http.fault": "faults that are injected",
  "envoy.filters.http.grpc_stats": "counters by gRPC service",
  "envoy.filters.http.grpc_web": "gRPC for browsers",
  "envoy.filters.http.stateful_session": "sessions that stay with one endpoint",
  "envoy.filters.network.mongo_proxy": "counters by command of MongoDB",
  "envoy.filters.network.mysql_proxy": "counters by command of MySQL",
  "envoy.filters.network.redis_proxy": "keys that are spread over endpoints, and counters by command of Redis",
};
/** Without it no Envoy serves HTTP: a list that has it is a whole one. */
const ALWAYS_THERE = "envoy.filters.http.router";

/** Filters that a proxy lacks, in order; none when it does not say what it has. */
export function lackedFilters({ extensions }: Pick<MeshProxy, "extensions">): readonly string[] {
  if (!extensions.has(ALWAYS_THERE)) return [];
  return Object.keys(DISPENSABLE).filter((name) => !extensions.has(name));
}
