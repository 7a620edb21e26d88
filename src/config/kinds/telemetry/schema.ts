/** telemetry.istio.io Telemetry: which requests of workloads are traced, counted and logged. */
import { list, map, message, oneof, required } from "../../schema/message.ts";
import { bool, double, duration, enumeration, string } from "../../schema/scalars.ts";
import { targetReferenceSchema, workloadSelectorSchema } from "../../selection/schema.ts";

const mode = enumeration("CLIENT_AND_SERVER", "CLIENT", "SERVER");
const providers = list(message({ name: required(string()) }));
const named = message({ name: required(string()), defaultValue: string() });
const valued = message({ value: required(string()) });

const customTagSchema = message(
  { literal: valued, environment: named, header: named, formatter: valued },
  oneof("literal", "environment", "header", "formatter"),
);

const metricMatchSchema = message(
  {
    metric: enumeration(
      "ALL_METRICS",
      "REQUEST_COUNT",
      "REQUEST_DURATION",
      "REQUEST_SIZE",
      "RESPONSE_SIZE",
      "TCP_OPENED_CONNECTIONS",
      "TCP_CLOSED_CONNECTIONS",
      "TCP_SENT_BYTES",
      "TCP_RECEIVED_BYTES",
      "GRPC_REQUEST_MESSAGES",
      "GRPC_RESPONSE_MESSAGES",
    ),
    customMetric: string(),
    mode,
  },
  oneof("metric", "customMetric"),
);

/** Schema of the spec of a Telemetry. */
export const telemetrySchema = message({
  selector: workloadSelectorSchema,
  targetRef: targetReferenceSchema,
  targetRefs: list(targetReferenceSchema),
  tracing: list(
    message({
      match: message({ mode }),
      providers,
      randomSamplingPercentage: double(),
      disableSpanReporting: bool(),
      customTags: map(customTagSchema),
      enableIstioTags: bool(),
      useRequestIdForTraceSampling: bool(),
    }),
  ),
  metrics: list(
    message({
      providers,
      overrides: list(
        message({
          match: metricMatchSchema,
          disabled: bool(),
          tagOverrides: map(message({ operation: enumeration("UPSERT", "REMOVE"), value: string() })),
        }),
      ),
      reportingInterval: duration(),
    }),
  ),
  accessLogging: list(
    message({
      match: message({ mode }),
      providers,
      disabled: bool(),
      filter: message({ expression: string() }),
    }),
  ),
});
