/** networking.istio.io WorkloadGroup: what the workload entries of virtual machines that join are made from. */
import { type Infer, list, map, message, oneof, required } from "../../schema/message.ts";
import { int32, string, uint32 } from "../../schema/scalars.ts";
import { workloadEntrySchema } from "../workload-entry/schema.ts";

const readinessProbeSchema = message(
  {
    initialDelaySeconds: int32(),
    timeoutSeconds: int32(),
    periodSeconds: int32(),
    successThreshold: int32(),
    failureThreshold: int32(),
    httpGet: message({
      path: string(),
      port: required(uint32()),
      host: string(),
      scheme: string(),
      httpHeaders: list(message({ name: string(), value: string() })),
    }),
    tcpSocket: message({ host: string(), port: required(uint32()) }),
    exec: message({ command: required(list(string())) }),
    grpc: message({ port: uint32(), service: string() }),
  },
  oneof("httpGet", "tcpSocket", "exec", "grpc"),
);

/** Schema of the spec of a WorkloadGroup. */
export const workloadGroupSchema = message({
  metadata: message({ labels: map(string()), annotations: map(string()) }),
  template: required(workloadEntrySchema),
  probe: readinessProbeSchema,
});

/** The spec of a WorkloadGroup. */
export type WorkloadGroup = Infer<typeof workloadGroupSchema>;
/** How a joined workload proves that it is ready. */
export type ReadinessProbe = Infer<typeof readinessProbeSchema>;
