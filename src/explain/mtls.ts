/** Who speaks mutual TLS to whom: what clients send, what servers accept, and which object says so. */

import type { PeerAuthentication } from "#config/kinds/peer-authentication/schema.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { hasLabels } from "#model/labels/labels.ts";
import type { KnownWorkload } from "./workloads.ts";

/** What a server accepts. */
export type Accepts = "DISABLE" | "PERMISSIVE" | "STRICT";
/** What a client sends. */
export type Sends = "mTLS" | "plain" | "TLS";

/** A decision, and the `kind/namespace/name` of the object behind it, or why there is none. */
export interface Decided<T> {
  readonly value: T;
  readonly by: string;
}

type Policy = ConfigObject<PeerAuthentication>;

/** The policies of the mesh in order of precedence. */
export interface PeerPolicies {
  readonly policies: readonly Policy[];
  readonly rootNamespace: string;
}

/** What a port of a workload accepts. The narrowest policy wins; what is unset is inherited. */
export function acceptedBy(
  server: KnownWorkload,
  port: number,
  { policies, rootNamespace }: PeerPolicies,
): Decided<Accepts> {
  if (server.proxy === "none") return { value: "DISABLE", by: "no proxy" };
  const selects = ({ spec }: Policy) => hasLabels(server.labels, spec.selector?.matchLabels);
  const isWide = ({ spec }: Policy) => Object.keys(spec.selector?.matchLabels ?? {}).length === 0;
  const inRoot = ({ metadata }: Policy) => metadata.namespace === rootNamespace;
  const atHome = policies.filter((policy) => policy.metadata.namespace === server.namespace && !inRoot(policy));
  const ofWorkload = atHome.find((policy) => !isWide(policy) && selects(policy));
  const ofPort = Object.entries(ofWorkload?.spec.portLevelMtls ?? {}).find(([number]) => Number(number) === port)?.[1];
  const candidates: readonly (readonly [Policy | undefined, string | undefined, string])[] = [
    [ofWorkload, ofPort?.mode, ` port ${port}`],
    [ofWorkload, ofWorkload?.spec.mtls?.mode, ""],
    ...[atHome.find(isWide), policies.find((policy) => inRoot(policy) && isWide(policy))].map(
      (policy) => [policy, policy?.spec.mtls?.mode, ""] as const,
    ),
  ];
  for (const [policy, mode, detail] of candidates) {
    if (policy !== undefined && isMode(mode)) return { value: mode, by: `${objectKey(policy)}${detail}` };
  }
  return { value: "PERMISSIVE", by: "default" };
}

function isMode(mode: string | undefined): mode is Accepts {
  return mode === "DISABLE" || mode === "PERMISSIVE" || mode === "STRICT";
}

/** Whether a client that sends this is understood by a server that accepts that. */
export function canTalk(sends: Sends, accepts: Accepts): boolean {
  if (sends === "mTLS") return accepts !== "DISABLE";
  // TLS that the client originates by itself ends in the application, which only a server without mutual TLS lets it reach.
  return accepts !== "STRICT";
}

/** One client and one port of a server. */
export interface Pair {
  readonly client: KnownWorkload;
  readonly server: KnownWorkload;
  readonly port: number;
  readonly sends: Decided<Sends>;
  readonly accepts: Decided<Accepts>;
}

/** Rows of a matrix: clients below one another, ports of servers side by side. A pair that cannot talk is marked by `X`. */
export function mtlsMatrix(pairs: readonly Pair[]): readonly (readonly string[])[] {
  const servers = [...new Set(pairs.map(serverName))];
  const clients = Map.groupBy(pairs, ({ client }) => `${client.name}.${client.namespace}`);
  const head = ["CLIENT \\ SERVER", ...servers];
  const rows = [...clients].map(([client, own]) => [
    client,
    ...servers.map((server) => {
      const pair = own.find((one) => serverName(one) === server);
      return pair === undefined ? "-" : cell(pair);
    }),
  ]);
  return [head, ...rows];
}

/** Rows that say which object decides what each server accepts and each client sends. */
export function mtlsReasons(pairs: readonly Pair[]): readonly (readonly string[])[] {
  const rows = pairs.map((pair) => [
    `${pair.client.name}.${pair.client.namespace}`,
    serverName(pair),
    pair.sends.value,
    pair.sends.by,
    pair.accepts.value,
    pair.accepts.by,
    canTalk(pair.sends.value, pair.accepts.value) ? "yes" : "NO",
  ]);
  return [["CLIENT", "SERVER", "SENDS", "DECIDED BY", "ACCEPTS", "DECIDED BY", "CAN TALK"], ...rows];
}

function serverName({ server, port }: Pair): string {
  return `${server.name}.${server.namespace}:${port}`;
}

function cell({ sends, accepts }: Pair): string {
  return canTalk(sends.value, accepts.value) ? sends.value : `X ${sends.value} to ${accepts.value}`;
}
