/** What webhooks count, under Istio's names. */
import type { MetricDefinition } from "#lib/metrics/metrics.ts";

const OBJECT = ["group", "version", "resource"] as const;

export const WEBHOOK_METRICS = {
  sidecar_injection_requests_total: { type: "counter", help: "Pods that the API server asked about" },
  sidecar_injection_success_total: { type: "counter", help: "Pods that got a proxy" },
  sidecar_injection_failure_total: { type: "counter", help: "Pods that were refused, and requests that were none" },
  sidecar_injection_skip_total: { type: "counter", help: "Pods that were to get no proxy" },
  sidecar_injection_time_seconds: {
    type: "histogram",
    help: "Time to answer a request about a pod",
    buckets: [0.001, 0.005, 0.02, 0.1, 1, 3, 5, 10, 20, 30, 60],
  },
  galley_validation_passed: { type: "counter", help: "Objects that were accepted", labels: OBJECT },
  galley_validation_failed: { type: "counter", help: "Objects that were refused", labels: [...OBJECT, "reason"] },
  galley_validation_http_error: { type: "counter", help: "Requests that were no reviews", labels: ["status"] },
} as const satisfies Record<string, MetricDefinition>;

export type WebhookMetric = keyof typeof WEBHOOK_METRICS;
