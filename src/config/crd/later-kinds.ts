/**
 * Kinds that people may write and the mesh does not act upon yet. Their definitions let the API server take and check them, so
 * that a configuration of production can be applied as a whole.
 */

import type { NamedKind } from "../kinds/kinds.ts";
import { list, map, message, oneof, required } from "../schema/message.ts";
import { bool, double, duration, enumeration, int32, string, struct, uint32 } from "../schema/scalars.ts";
import { targetReferenceSchema, workloadSelectorSchema } from "../selection/schema.ts";

const attachment = {
  selector: workloadSelectorSchema,
  targetRef: targetReferenceSchema,
  targetRefs: list(targetReferenceSchema),
};
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

const telemetrySchema = message({
  ...attachment,
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

const wasmPluginSchema = message({
  ...attachment,
  url: required(string()),
  sha256: string(),
  imagePullPolicy: enumeration("UNSPECIFIED_POLICY", "IfNotPresent", "Always"),
  imagePullSecret: string(),
  verificationKey: string(),
  pluginConfig: struct(),
  pluginName: string(),
  phase: enumeration("UNSPECIFIED_PHASE", "AUTHN", "AUTHZ", "STATS"),
  priority: int32(),
  failStrategy: enumeration("FAIL_CLOSE", "FAIL_OPEN", "FAIL_RELOAD"),
  vmConfig: message({
    env: list(message({ name: required(string()), value: string(), valueFrom: enumeration("INLINE", "HOST") })),
  }),
  match: list(
    message({
      mode: enumeration("UNDEFINED", "CLIENT", "SERVER", "CLIENT_AND_SERVER"),
      ports: list(message({ number: required(uint32()) })),
    }),
  ),
  type: enumeration("UNSPECIFIED_PLUGIN_TYPE", "HTTP", "NETWORK"),
});

/** All of them. */
export const LATER_KINDS: readonly Pick<NamedKind, "group" | "name" | "schema">[] = [
  { group: "extensions.istio.io", name: "WasmPlugin", schema: wasmPluginSchema },
  { group: "telemetry.istio.io", name: "Telemetry", schema: telemetrySchema },
];
