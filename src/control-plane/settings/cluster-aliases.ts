/** Proxies that call their cluster by another name: what they get is what the cluster of the right name gets. */
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { PartsOf } from "#xds/parts/parts.ts";

/** The id of a cluster by each of its other names. */
export type ClusterAliases = ReadonlyMap<string, string>;

/** Reads `alias=cluster`, one cluster each; tells what is wrong. */
export function parseAliases(texts: readonly string[]): {
  readonly aliases: ClusterAliases;
  readonly problems: readonly string[];
} {
  const aliases = new Map<string, string>();
  const problems: string[] = [];
  for (const text of texts.flatMap((each) => each.split(",")).filter((each) => each !== "")) {
    const [alias = "", clusterId = "", ...more] = text.split("=");
    if (alias === "" || clusterId === "" || more.length > 0)
      problems.push(`--clusterAliases: "${text}" is not ALIAS=CLUSTER`);
    else if ([...aliases.values()].includes(clusterId))
      problems.push(`--clusterAliases: cluster "${clusterId}" has more than one alias`);
    else aliases.set(alias, clusterId);
  }
  return { aliases, problems };
}

/** Parts for proxies as if they had said the right name. */
export function withAliases(partsOf: PartsOf, aliases: ClusterAliases = new Map()): PartsOf {
  if (aliases.size === 0) return partsOf;
  const renamed = new WeakMap<MeshProxy, MeshProxy>();
  return (snapshot, proxy) => {
    const clusterId = aliases.get(String(proxy.metadata.CLUSTER_ID ?? ""));
    if (clusterId === undefined) return partsOf(snapshot, proxy);
    const known = renamed.get(proxy) ?? { ...proxy, metadata: { ...proxy.metadata, CLUSTER_ID: clusterId } };
    renamed.set(proxy, known);
    return partsOf(snapshot, known);
  };
}

/** Finds what belongs to a cluster by the name that a caller says, be it another one of it. */
export function byAliases<Found>(
  find: (clusterId: string) => Found | undefined,
  aliases: ClusterAliases = new Map(),
): (clusterId: string) => Found | undefined {
  return (said) => find(said) ?? find(aliases.get(said) ?? said);
}
