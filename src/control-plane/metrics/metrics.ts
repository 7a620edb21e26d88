/** All metrics of the control plane. */
import type { Authority } from "#ca/authority/authority.ts";
import { CA_COUNTERS, CA_GAUGES, caGauges } from "#ca/authority/metrics.ts";
import type { ConflictMetric } from "#explain/conflicts/conflict.ts";
import { VERSION_TEXT } from "#lib/command/version-command.ts";
import { type MetricDefinition, Metrics } from "#lib/metrics/metrics.ts";
import { VERSION } from "#lib/version.ts";
import type { ConnectedProxy, Source } from "#model/ports.ts";
import { KEY_SET_COUNTERS } from "#sources/jwks/key-set-source.ts";
import { placeOf } from "#translate/targets/service-targets.ts";
import { WEBHOOK_METRICS } from "#webhooks/metrics.ts";
import { XDS_METRICS } from "#xds/metrics/metrics.ts";
import { ADMISSION_METRICS } from "./admissions.ts";
import { REGISTRATION_COUNTERS } from "./counted-entries.ts";
import { GRPC_METRICS } from "./grpc-metrics.ts";
import { KUBERNETES_METRICS } from "./kubernetes-metrics.ts";
import { CONFLICT_GAUGES, MESH_FIGURES, MESH_GAUGES, type MeshGauge } from "./mesh-gauges.ts";

const PILOT_METRICS = {
  istio_build: { type: "gauge", help: "What was built", labels: ["component", "tag"] },
  pilot_info: { type: "gauge", help: "Version of the control plane", labels: ["version"] },
  pilot_no_ip: { type: "gauge", help: "Connected sidecars that no service leads to" },
  pilot_pushcontext_init_seconds: {
    type: "histogram",
    help: "Seconds from the objects of the configuration to a snapshot of the mesh",
    buckets: [0.01, 0.1, 0.5, 1, 3, 5],
  },
  pilot_total_rejected_configs: {
    type: "counter",
    help: "Servers of gateways that were left out because of others",
    labels: ["type", "name"],
  },
  istiod_uptime_seconds: { type: "gauge", help: "Seconds since the control plane started" },
} as const satisfies Record<string, MetricDefinition>;

const ALL = {
  ...PILOT_METRICS,
  ...MESH_GAUGES,
  ...CONFLICT_GAUGES,
  ...XDS_METRICS,
  ...CA_COUNTERS,
  ...CA_GAUGES,
  ...KEY_SET_COUNTERS,
  ...WEBHOOK_METRICS,
  ...REGISTRATION_COUNTERS,
  ...KUBERNETES_METRICS,
  ...GRPC_METRICS,
  ...ADMISSION_METRICS,
};
export type ControlPlaneMetrics = Metrics<keyof typeof ALL>;

/** The registry, with what can be told at any time. */
export function controlPlaneMetrics(source: Source, now: () => number): ControlPlaneMetrics {
  const metrics = new Metrics(ALL, { process: true });
  const startedAt = now();
  metrics.set("istio_build", 1, { component: "pilot", tag: VERSION });
  metrics.set("pilot_info", 1, { version: VERSION_TEXT });
  metrics.compute("istiod_uptime_seconds", () => [{ value: (now() - startedAt) / 1000 }]);
  for (const name of Object.keys(MESH_GAUGES) as MeshGauge[]) {
    metrics.compute(name, () => [{ value: MESH_FIGURES[name](source.current()) }]);
  }
  return metrics;
}

/** Adds what the connected proxies have to tell. */
export function addProxyMetrics(
  metrics: ControlPlaneMetrics,
  source: Pick<Source, "current">,
  connections: () => readonly ConnectedProxy[],
): void {
  metrics.compute("pilot_no_ip", () => {
    const snapshot = source.current();
    const lost = connections().filter(({ proxy }) => {
      return proxy.type === "sidecar" && placeOf(snapshot, proxy).targets.length === 0;
    });
    return [{ value: lost.length }];
  });
}

/** Adds what objects claim of one another. */
export function addConflictMetrics(
  metrics: ControlPlaneMetrics,
  watch: { count(metric: ConflictMetric): number },
): void {
  for (const name of Object.keys(CONFLICT_GAUGES) as (keyof typeof CONFLICT_GAUGES)[]) {
    metrics.compute(name, () => [{ value: watch.count(name) }]);
  }
}

/** Adds what an authority has to tell. */
export function addCaMetrics(metrics: ControlPlaneMetrics, authority: Authority, now: () => number): void {
  for (const name of Object.keys(CA_GAUGES) as (keyof typeof CA_GAUGES)[]) {
    metrics.compute(name, () => caGauges(authority, now())[name]);
  }
}
