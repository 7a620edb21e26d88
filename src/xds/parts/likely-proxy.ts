/** A proxy as most are, for what is built before the first one comes. */
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";

/** A sidecar where most services are. */
export function likelyProxy(snapshot: Snapshot): MeshProxy {
  const { clusterId, domain } = snapshot.features;
  const namespace = busiestNamespace(snapshot);
  const id = `likely.${namespace}`;
  const dnsDomain = `${namespace}.svc.${domain}`;
  return {
    nodeId: `sidecar~0.0.0.0~${id}~${dnsDomain}`,
    type: "sidecar",
    addresses: [],
    id,
    namespace,
    dnsDomain,
    labels: {},
    serviceAccount: "",
    metadata: { CLUSTER_ID: clusterId, NAMESPACE: namespace },
    envoyVersion: "",
    extensions: new Set(),
  };
}

function busiestNamespace({ services }: Snapshot): string {
  const counts = Map.groupBy(services, ({ namespace }) => namespace);
  return [...counts].toSorted(([, a], [, b]) => b.length - a.length)[0]?.[0] ?? "default";
}
