import type { ConnectedProxy } from "#model/ports.ts";
import type { DebugState, PageRequest } from "./page.ts";
import { inScope } from "./scope.ts";

const TYPES = "type.googleapis.com/envoy.config.";
/** Fields of Istio's older shape, beside the general `resources`. */
const NAMED: Readonly<Record<string, string>> = {
  cluster: `${TYPES}cluster.v3.Cluster`,
  listener: `${TYPES}listener.v3.Listener`,
  route: `${TYPES}route.v3.RouteConfiguration`,
  endpoint: `${TYPES}endpoint.v3.ClusterLoadAssignment`,
};

/** What each connected proxy, or each of one namespace, was sent and has acknowledged, in Istio's shape. */
export function syncz({ source, connections }: DebugState, { scope, query }: PageRequest): readonly object[] {
  const { clusterId } = source.current().features;
  const { namespace: only = "" } = query;
  return connections()
    .map((proxy) => ({ proxy, ...partsOf(proxy.nodeId) }))
    .filter(({ namespace }) => inScope(scope, namespace) && (only === "" || namespace === only))
    .map(({ proxy, id, type }) => ({
      cluster_id: clusterId,
      proxy: id,
      proxy_type: type,
      istio_version: proxy.istioVersion,
      ...named(proxy),
      resources: Object.fromEntries(
        [...proxy.types].map(([url, { sent, acknowledged, rejected, sentAt }]) => {
          const sentTime = sentAt === undefined ? "" : new Date(sentAt).toISOString();
          return [url, withoutEmpty({ sent, acked: acknowledged, lastError: rejected, sentTime })];
        }),
      ),
    }));
}

function named({ types }: ConnectedProxy): Record<string, string> {
  const pairs = Object.entries(NAMED).flatMap(([name, url]) => {
    const { sent = "", acknowledged = "" } = types.get(url) ?? {};
    return [[`${name}_sent`, sent] as const, [`${name}_acked`, acknowledged] as const];
  });
  return withoutEmpty(Object.fromEntries(pairs));
}

function withoutEmpty(fields: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""));
}

/** Of `sidecar~10.0.0.1~httpbin-1.default~default.svc.cluster.local`. */
function partsOf(nodeId: string): { readonly type: string; readonly id: string; readonly namespace: string } {
  const [type = "", , id = ""] = nodeId.split("~");
  return { type, id, namespace: id.slice(id.lastIndexOf(".") + 1) };
}
