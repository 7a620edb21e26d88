/** telemetry.istio.io Telemetry: which requests of workloads are traced, counted and logged. */
import { field, rule } from "../../schema/field.ts";
import { list, map, message, oneof, required } from "../../schema/message.ts";
import { bool, double, enumeration, positiveDuration, string } from "../../schema/scalars.ts";
import { attachmentFields, ONE_ATTACHMENT } from "../../selection/schema.ts";

const mode = enumeration("CLIENT_AND_SERVER", "CLIENT", "SERVER");
const nonEmpty = required(field(string(), { minLength: 1 }));
const optionalFlag = field(bool(), { nullable: true });
const providers = list(message({ name: nonEmpty }));
const named = message({ name: nonEmpty, defaultValue: string() });
const valued = message({ value: nonEmpty });

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
    customMetric: field(string(), { minLength: 1 }),
    mode,
  },
  oneof("metric", "customMetric"),
);

const tagOverrideSchema = field(message({ operation: enumeration("UPSERT", "REMOVE"), value: string() }), {
  rules: [
    rule(
      '!has(self.operation) || self.operation != "UPSERT" || self.value != ""',
      "value must be set when operation is UPSERT",
    ),
    rule(
      '!has(self.operation) || self.operation != "REMOVE" || !has(self.value)',
      "value must not be set when operation is REMOVE",
    ),
  ],
});

const tracingSchema = message({
  match: message({ mode }),
  providers,
  randomSamplingPercentage: field(double(), {
    description: "Share of requests that are traced, 0 to 100",
    nullable: true,
    minimum: 0,
    maximum: 100,
  }),
  disableSpanReporting: optionalFlag,
  customTags: map(customTagSchema),
  enableIstioTags: optionalFlag,
  useRequestIdForTraceSampling: optionalFlag,
});

const metricsSchema = message({
  providers,
  overrides: list(message({ match: metricMatchSchema, disabled: optionalFlag, tagOverrides: map(tagOverrideSchema) })),
  reportingInterval: positiveDuration(),
});

const accessLoggingSchema = message({
  match: message({ mode }),
  providers,
  disabled: optionalFlag,
  filter: message({ expression: string() }),
});

/** Schema of the spec of a Telemetry. */
export const telemetrySchema = field(
  message({
    ...attachmentFields,
    tracing: field(list(tracingSchema), { description: "Which requests are traced, by whom, with which tags" }),
    metrics: field(list(metricsSchema), { description: "Who collects metrics, and what is different in them" }),
    accessLogging: field(list(accessLoggingSchema), {
      description: "Who writes access logs, and of which requests",
    }),
  }),
  { rules: [ONE_ATTACHMENT] },
);
