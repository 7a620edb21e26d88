import type { NodePod, NodePods } from "#ca/service/node-agents.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { ApiError, type KubernetesApi } from "#lib/kubernetes/api-client.ts";

const TIME_LIMIT_MS = 10_000;

/** Pods as the API server knows them when it is asked. */
export function nodePods(api: KubernetesApi): NodePods {
  const get = (path: string, fieldSelector?: string) =>
    api.call({ path, query: { fieldSelector }, signal: AbortSignal.timeout(TIME_LIMIT_MS) });
  return {
    pod: async (namespace, name) => {
      try {
        return podOf(await get(`${podsOf(namespace)}/${encodeURIComponent(name)}`));
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return undefined;
        throw error;
      }
    },
    runs: async ({ namespace, serviceAccount, node }) => {
      const selector = `spec.nodeName=${node},spec.serviceAccountName=${serviceAccount},status.phase!=Failed`;
      const { items } = await get(podsOf(namespace), selector);
      return Array.isArray(items) && items.length > 0;
    },
  };
}

function podsOf(namespace: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;
}

function podOf({ metadata, spec }: Readonly<Record<string, unknown>>): NodePod {
  const text = (value: unknown) => (typeof value === "string" ? value : "");
  const { nodeName, serviceAccountName } = isRecord(spec) ? spec : {};
  const { uid } = isRecord(metadata) ? metadata : {};
  return { uid: text(uid), serviceAccount: text(serviceAccountName), node: text(nodeName) };
}
