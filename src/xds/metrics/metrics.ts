/** Figures about pushes under the names that Istio's dashboards know. Who wires the server decides where they go. */
import { STATUS, statusName } from "#lib/grpc/status.ts";
import type { MetricDefinition } from "#lib/metrics/metrics.ts";

export interface Metrics {
  /** By 1 when not said otherwise. */
  count(name: XdsMetric, labels?: Labels, by?: number): void;
  set(name: XdsMetric, value: number, labels?: Labels): void;
  observe(name: XdsMetric, value: number, labels?: Labels): void;
  /** Drops a series of a gauge. */
  remove?(name: XdsMetric, labels: Labels): void;
}

export type Labels = Readonly<Record<string, string>>;
export type XdsMetric = keyof typeof XDS_METRICS;

/** For those who do not count. */
export const NO_METRICS: Metrics = { count: () => undefined, set: () => undefined, observe: () => undefined };

const SECONDS = [0.01, 0.1, 1, 3, 5, 10, 20, 30];
const LONG_SECONDS = [0.1, 0.5, 1, 3, 5, 10, 20, 30];
const BYTES = [1, 10_000, 1_000_000, 4_000_000, 10_000_000, 40_000_000];

function counter(help: string, ...labels: string[]): MetricDefinition {
  return { type: "counter", help, labels };
}

function gauge(help: string, ...labels: string[]): MetricDefinition {
  return { type: "gauge", help, labels };
}

function histogram(buckets: readonly number[], help: string, ...labels: string[]): MetricDefinition {
  return { type: "histogram", help, labels, buckets };
}

/** All metrics of the xDS server. */
export const XDS_METRICS = {
  pilot_xds: gauge("Proxies connected, by their version", "version"),
  pilot_xds_pushes: counter("Responses sent, by type", "type"),
  pilot_push_triggers: counter("Pushes started, by what changed", "type"),
  pilot_inbound_updates: counter("Changes of the mesh, by what changed", "type"),
  pilot_debounce_time: histogram(SECONDS, "Seconds from the first of some changes to their push"),
  pilot_proxy_queue_time: histogram(LONG_SECONDS, "Seconds a proxy waited for its turn"),
  pilot_proxy_convergence_time: histogram(LONG_SECONDS, "Seconds from a change until a proxy had taken all of it"),
  pilot_xds_push_time: histogram(SECONDS, "Seconds to plan, build and hand over a response", "type"),
  pilot_xds_send_time: histogram(SECONDS, "Seconds until a response had left"),
  pilot_xds_config_size_bytes: histogram(BYTES, "Sizes of responses", "type"),
  pilot_total_xds_rejects: counter("Responses that proxies rejected, by type", "type"),
  pilot_xds_cds_reject: gauge("Responses with clusters that proxies rejected", "node", "err"),
  pilot_xds_eds_reject: gauge("Responses with endpoints that proxies rejected", "node", "err"),
  pilot_xds_lds_reject: gauge("Responses with listeners that proxies rejected", "node", "err"),
  pilot_xds_rds_reject: gauge("Responses with routes that proxies rejected", "node", "err"),
  pilot_xds_expired_nonce: counter("Requests that answered an old response", "type"),
  pilot_total_xds_internal_errors: counter("Pushes that failed because of an error in the control plane"),
  pilot_xds_write_timeout: counter("Proxies that were cut off because they did not read"),
  pilot_xds_recv_max: gauge("Size of the largest request so far"),
  pilot_sds_certificate_errors_total: counter(
    "Secrets that proxies asked for and that are not there, not for them, or not valid at that time",
  ),
  pilot_envoy_filter_status: gauge("Whether the patches of a filter change something", "name", "patch", "result"),
  xds_cache_reads: counter("Looks for resources and parts of them, by whether they were there", "type"),
  xds_cache_evictions: counter("Resources and parts of them that nobody uses any more"),
  xds_cache_size: gauge("Resources that are held"),
} as const;

/** A code of gRPC as Go spells it, such as `InvalidArgument`. */
export function codeName(code = 0): string {
  if (code === STATUS.OK) return "OK";
  if (code === STATUS.CANCELLED) return "Canceled";
  const name = statusName(code);
  if (name === String(code)) return "Unknown"; // there must not be a series for each number
  return name.toLowerCase().replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
