/** Figures about the API servers of Kubernetes that a control plane follows, under the names that Istio's dashboards know. */
import type { EndpointSlice } from "#config/kinds/endpoint-slice/schema.ts";
import { WEBHOOK_BUNDLE_COUNTERS } from "#controllers/webhook-bundles.ts";
import type { GaugeValue, MetricDefinition } from "#lib/metrics/metrics.ts";
import type { Source } from "#model/ports.ts";
import type { ClusterEvents } from "#sources/kubernetes/followed-objects.ts";
import type { ClusterStatus } from "#sources/kubernetes/remote-clusters.ts";

export const KUBERNETES_METRICS = {
  ...WEBHOOK_BUNDLE_COUNTERS,
  pilot_k8s_reg_events: { type: "counter", help: "Changes of services and workloads", labels: ["type", "event"] },
  pilot_k8s_cfg_events: { type: "counter", help: "Changes of the configuration", labels: ["type", "event"] },
  pilot_k8s_endpoints_pending_pod: { type: "gauge", help: "Endpoints whose pod is not known" },
  controller_sync_errors_total: { type: "counter", help: "Kinds that could not be read", labels: ["cluster"] },
  istiod_managed_clusters: { type: "gauge", help: "Clusters of the mesh", labels: ["cluster_type"] },
  istiod_remote_cluster_sync_status: {
    type: "gauge",
    help: "1 for how far a further cluster was read",
    labels: ["cluster", "cluster_type", "status"],
  },
  remote_cluster_secret_events_total: {
    type: "counter",
    help: "Changes of Secrets with kubeconfigs of further clusters",
    labels: ["event"],
  },
} as const satisfies Record<string, MetricDefinition>;

export type KubernetesMetric = keyof typeof KUBERNETES_METRICS;

/** The kinds that services and workloads are made of, as Istio calls them here. */
const REGISTRY_KINDS: Readonly<Record<string, string>> = {
  Service: "Services",
  Pod: "Pods",
  Node: "Nodes",
  Namespace: "Namespaces",
  EndpointSlice: "EndpointSlice",
};
const STATUSES = ["synced", "syncing", "timeout", "closed"] as const;

/** What of a registry of metrics is needed here. */
export interface KubernetesCounters {
  count(name: KubernetesMetric, labels?: Readonly<Record<string, string>>, by?: number): void;
  compute(name: KubernetesMetric, values: () => readonly GaugeValue[]): void;
}

/** Counts what API servers tell. */
export function countedEvents(metrics: Pick<KubernetesCounters, "count">, clusterId: string): ClusterEvents {
  return {
    happened: ({ kind, isCustom }, event, times = 1) => {
      const type = isCustom ? kind : REGISTRY_KINDS[kind];
      if (type === undefined) return;
      metrics.count(isCustom ? "pilot_k8s_cfg_events" : "pilot_k8s_reg_events", { type, event }, times);
    },
    failed: (cluster) => metrics.count("controller_sync_errors_total", { cluster: cluster || clusterId }),
    secret: (event) => metrics.count("remote_cluster_secret_events_total", { event }),
  };
}

/** Adds what can be told at any time. */
export function addKubernetesGauges(
  metrics: Pick<KubernetesCounters, "compute">,
  source: Pick<Source, "objects">,
  remotes: () => readonly ClusterStatus[],
): void {
  metrics.compute("pilot_k8s_endpoints_pending_pod", () => [{ value: endpointsWithoutPod(source.objects()) }]);
  metrics.compute("istiod_managed_clusters", () => [
    { value: 1, labels: { cluster_type: "local" } },
    { value: remotes().length, labels: { cluster_type: "remote" } },
  ]);
  metrics.compute("istiod_remote_cluster_sync_status", () =>
    remotes().flatMap(({ id, status }) =>
      STATUSES.map((each) => ({
        value: each === status ? 1 : 0,
        labels: { cluster: id, cluster_type: "remote", status: each },
      })),
    ),
  );
}

/** How many endpoints of slices name a pod that is not there. */
export function endpointsWithoutPod(objects: ReturnType<Source["objects"]>): number {
  const pods = new Set(
    objects.flatMap(({ kind, metadata }) => (kind === "Pod" ? `${metadata.namespace}/${metadata.name}` : [])),
  );
  const slices = objects.filter(({ kind }) => kind === "EndpointSlice");
  const pendingOf = ({ metadata, spec }: (typeof objects)[number]) =>
    ((spec as EndpointSlice).endpoints ?? []).filter(({ targetRef }) => {
      if (targetRef?.kind !== "Pod") return false;
      return !pods.has(`${targetRef.namespace ?? metadata.namespace}/${targetRef.name}`);
    });
  return slices.reduce((sum, slice) => sum + pendingOf(slice).length, 0);
}
