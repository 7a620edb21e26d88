/** Kubernetes v1 Pod, as far as the mesh looks at one. */
import { type Infer, list, message } from "../../schema/message.ts";
import { int32, string } from "../../schema/scalars.ts";

const containerSchema = message({
  name: string(),
  /** `Always` makes an init container one that runs beside the others. */
  restartPolicy: string(),
  ports: list(message({ name: string(), containerPort: int32(), protocol: string() })),
});

/** Schema of the spec of a Pod. */
export const podSchema = message({
  nodeName: string(),
  serviceAccountName: string(),
  hostname: string(),
  subdomain: string(),
  containers: list(containerSchema),
  initContainers: list(containerSchema),
});

/** Schema of the status of a Pod. */
export const podStatusSchema = message({
  phase: string(),
  podIP: string(),
  podIPs: list(message({ ip: string() })),
  conditions: list(message({ type: string(), status: string() })),
});

/** The spec of a Pod. */
export type Pod = Infer<typeof podSchema>;
/** The status of a Pod. */
export type PodStatus = Infer<typeof podStatusSchema>;
/** A container of a Pod. */
export type Container = Infer<typeof containerSchema>;
