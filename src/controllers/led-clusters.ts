/**
 * Further clusters that have no control plane of their own, but name ours: what a leader does in its own cluster is done there
 * too. They come and go; each is asked once, when it comes.
 */
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import { ApiError, type KubernetesApi } from "#lib/kubernetes/api-client.ts";
import { refusalText } from "#lib/kubernetes/missing-right.ts";
import type { Logger } from "#lib/log/log.ts";

/** As much of a client as is needed to ask. */
type Asked = Pick<KubernetesApi, "call">;

export interface LedClustersOptions<Api extends Asked> {
  /** Further clusters of the mesh, by id. */
  readonly clusters: () => ReadonlyMap<string, Api>;
  /** Calls when these may have changed; gives the way to stop. */
  readonly onClusters: (changed: () => void) => () => void;
  /** The cluster of this control plane. */
  readonly clusterId: string;
  /** Where control planes are. */
  readonly namespace: string;
  /** What is to be done in a cluster until the signal aborts. */
  readonly lead: (api: Api, clusterId: string, signal: AbortSignal) => Promise<void>;
  readonly log: Logger;
}

interface LedCluster {
  readonly api: Asked;
  readonly stop: AbortController;
  readonly running: Promise<void>;
}

/** On the control plane's namespace there: ids of clusters whose control planes see to it, or `*`. */
const CONTROL_PLANES = "topology.istio.io/controlPlaneClusters";
const RETRY = { initialMs: 500, maxMs: 30_000 };

/** Leads until the signal aborts. Only one replica may do this at a time. */
export async function leadClusters<Api extends Asked>(
  options: LedClustersOptions<Api>,
  signal: AbortSignal,
): Promise<void> {
  const led = new Map<string, LedCluster>();
  const look = () => {
    const clusters = options.clusters();
    for (const [id, { api, stop }] of led) {
      if (clusters.get(id) === api) continue;
      stop.abort();
      led.delete(id);
    }
    for (const [id, api] of clusters) {
      if (led.has(id)) continue;
      const stop = new AbortController();
      const running = leadCluster({ ...options, id, api }, AbortSignal.any([signal, stop.signal]));
      led.set(id, { api, stop, running });
    }
  };
  const stop = options.onClusters(look);
  look();
  if (!signal.aborted)
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  stop();
  await Promise.all([...led.values()].map(({ running }) => running));
}

interface Candidate<Api extends Asked> extends LedClustersOptions<Api> {
  readonly id: string;
  readonly api: Api;
}

async function leadCluster<Api extends Asked>(candidate: Candidate<Api>, signal: AbortSignal): Promise<void> {
  const { id, api, lead, log } = candidate;
  if (!(await namesUs(candidate, signal))) return;
  log.info("a cluster is led from here", { cluster: id });
  await lead(api, id, signal);
}

async function namesUs(
  { api, id, clusterId, namespace, log }: Omit<Candidate<Asked>, "clusters" | "onClusters" | "lead">,
  signal: AbortSignal,
): Promise<boolean> {
  const backoff = new Backoff(RETRY);
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
  while (!signal.aborted) {
    try {
      const { metadata } = await api.call({ path, signal });
      const named = metadata.annotations?.[CONTROL_PLANES]?.split(",") ?? [];
      return named.includes("*") || named.includes(clusterId);
    } catch (problem) {
      if (problem instanceof ApiError && problem.status === 404) return false;
      if (!signal.aborted)
        log.warn("a cluster cannot be asked who leads it", { cluster: id, reason: refusalText(problem) });
      await sleep(backoff.next(), signal);
    }
  }
  return false;
}
