import { kind } from "../kind.ts";
import { telemetrySchema } from "./schema.ts";

/** telemetry.istio.io Telemetry. */
export const telemetryKind = kind({
  group: "telemetry.istio.io",
  name: "Telemetry",
  plural: "telemetries",
  versions: ["v1", "v1alpha1"],
  schema: telemetrySchema,
  hasNoEffect: true,
  crd: {
    shortName: "telemetry",
    description: "Traces, metrics and access logs of workloads. Has no effect yet",
  },
});
