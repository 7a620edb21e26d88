/** networking.istio.io WorkloadGroup: what the workload entries of virtual machines that join are made from. */
import { field, rule } from "../../schema/field.ts";
import { type Infer, list, map, message, oneof, required } from "../../schema/message.ts";
import { int32, portNumber, string } from "../../schema/scalars.ts";
import { workloadTemplateSchema } from "../workload-entry/schema.ts";

const SCHEME = rule('self in ["", "HTTP", "HTTPS"]', "scheme must be one of [HTTP, HTTPS]");
const HEADER = "^[-_A-Za-z0-9]+$";
const notNegative = field(int32(), { minimum: 0 });

const readinessProbeSchema = message(
  {
    initialDelaySeconds: notNegative,
    timeoutSeconds: notNegative,
    periodSeconds: notNegative,
    successThreshold: notNegative,
    failureThreshold: notNegative,
    httpGet: message({
      path: string(),
      port: required(portNumber()),
      host: string(),
      scheme: field(string(), { rules: [SCHEME] }),
      httpHeaders: list(message({ name: field(string(), { pattern: HEADER }), value: string() })),
    }),
    tcpSocket: message({ host: string(), port: required(portNumber()) }),
    exec: message({ command: required(list(field(string(), { minLength: 1 }))) }),
    grpc: message({ port: portNumber(), service: string() }),
  },
  oneof("httpGet", "tcpSocket", "exec", "grpc"),
);

const texts = field(map(string()), { maxProperties: 256 });

/** Schema of the spec of a WorkloadGroup. */
export const workloadGroupSchema = message({
  metadata: field(message({ labels: texts, annotations: texts }), {
    description: "Labels and annotations of entries",
  }),
  template: required(field(workloadTemplateSchema, { description: "What entries begin with" })),
  probe: field(readinessProbeSchema, {
    description: "How an agent finds out whether its workload is healthy",
  }),
});

/** The spec of a WorkloadGroup. */
export type WorkloadGroup = Infer<typeof workloadGroupSchema>;
/** How a joined workload proves that it is ready. */
export type ReadinessProbe = Infer<typeof readinessProbeSchema>;
