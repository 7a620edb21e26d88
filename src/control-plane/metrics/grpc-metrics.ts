/** Figures about calls with one answer, under the names of gRPC's own exporters. Streams are not counted, as by istiod. */
import { GrpcError, STATUS } from "#lib/grpc/status.ts";
import type { MetricDefinition } from "#lib/metrics/metrics.ts";
import { codeName } from "#xds/metrics/metrics.ts";

const METHOD = ["grpc_type", "grpc_service", "grpc_method"];

export const GRPC_METRICS = {
  grpc_server_started_total: { type: "counter", help: "Calls that began", labels: METHOD },
  grpc_server_handled_total: { type: "counter", help: "Calls that ended", labels: [...METHOD, "grpc_code"] },
  grpc_server_msg_received_total: { type: "counter", help: "Messages received", labels: METHOD },
  grpc_server_msg_sent_total: { type: "counter", help: "Messages sent", labels: METHOD },
  grpc_server_handling_seconds: {
    type: "histogram",
    help: "Seconds until calls had their answer",
    labels: METHOD,
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  },
} as const satisfies Record<string, MetricDefinition>;

export type GrpcMetric = keyof typeof GRPC_METRICS;

/** What of a registry of metrics is needed here. */
export interface GrpcCounters {
  count(name: GrpcMetric, labels: Readonly<Record<string, string>>): void;
  observe(name: GrpcMetric, value: number, labels: Readonly<Record<string, string>>): void;
}

/** Does the work of a call to `/package.Service/Method` and counts it, however it ends. */
export function countedCalls(metrics: GrpcCounters, now: () => number) {
  return async <T>(path: string, work: () => Promise<T>): Promise<T> => {
    const [, grpc_service = "", grpc_method = ""] = path.split("/");
    const labels = { grpc_type: "unary", grpc_service, grpc_method };
    const startedAt = now();
    const ended = (code: number) => {
      metrics.count("grpc_server_handled_total", { ...labels, grpc_code: codeName(code) });
      metrics.observe("grpc_server_handling_seconds", (now() - startedAt) / 1000, labels);
    };
    metrics.count("grpc_server_started_total", labels);
    metrics.count("grpc_server_msg_received_total", labels);
    try {
      const answer = await work();
      metrics.count("grpc_server_msg_sent_total", labels);
      ended(STATUS.OK);
      return answer;
    } catch (thrown) {
      ended(thrown instanceof GrpcError ? thrown.code : STATUS.UNKNOWN);
      throw thrown;
    }
  };
}
