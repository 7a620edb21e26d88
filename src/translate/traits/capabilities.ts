/**
 * What a proxy can do without, by the extensions that it lists and by its version. An Envoy rejects a listener for one filter
 * that it does not have, and with the listener all that is right in it; a strict one (`--reject-unknown-dynamic-fields`) does so for
 * a field. So what it lacks is left out where requests pass as they should without it.
 *
 * What decides who may pass (RBAC, JWT, external authorization, TLS) is in neither table: it is sent, and an Envoy without it
 * keeps what it had. Whatever else is generated, every Envoy from 1.28 on has (`old-proxy.test.ts` holds it). Istio itself looks at
 * the ISTIO_VERSION of a proxy for nothing that is sent here but for patches of EnvoyFilters, which say so themselves.
 */
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";

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
export function lackedFilters(proxy: Pick<MeshProxy, "extensions">): readonly string[] {
  return Object.keys(DISPENSABLE).filter((name) => !mayHave(proxy, name));
}

/** Whether it has an extension, or does not say what it has. */
export function mayHave({ extensions }: Pick<MeshProxy, "extensions">, name: string): boolean {
  return extensions.has(name) || !extensions.has(ALWAYS_THERE);
}

/** Fields with the minor version of Envoy 1 that has them first, and what is lost without. */
const FIELDS = {
  "Cluster.dns_jitter": { since: 32, lost: "proxies ask for names at the same moments" },
  "CaresDnsResolverConfig.udp_max_queries": { since: 31, lost: "a socket may stick to a name server that is gone" },
  "RequestMirrorPolicy.disable_shadow_host_suffix_append": {
    since: 31,
    lost: "hosts of mirrored requests end with -shadow",
  },
  "CorsPolicy.forward_not_matching_preflights": { since: 30, lost: "what becomes of preflights of other origins" },
} as const satisfies Readonly<Record<string, { readonly since: number; readonly lost: string }>>;

/** A field that not every Envoy has. */
export type VersionedField = keyof typeof FIELDS;

/** Fields that an Envoy of that version lacks, in order; none when it does not say its version. */
export function lackedFields({ envoyVersion }: Pick<MeshProxy, "envoyVersion">): readonly VersionedField[] {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(envoyVersion) ?? [];
  if (major !== "1") return [];
  return (Object.keys(FIELDS) as VersionedField[]).filter((name) => Number(minor) < FIELDS[name].since);
}
