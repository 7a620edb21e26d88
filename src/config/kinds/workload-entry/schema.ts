/** networking.istio.io WorkloadEntry: one workload outside a pod, such as a virtual machine or a process on this one. */
import { type Infer, list, map, message } from "../../schema/message.ts";
import { string, uint32 } from "../../schema/scalars.ts";

/** Schema of the spec of a WorkloadEntry; a ServiceEntry lists its endpoints in the same form. */
export const workloadEntrySchema = message({
  address: string(),
  /** Port number by the name of the service port it serves. */
  ports: map(uint32()),
  labels: map(string()),
  network: string(),
  /** `region/zone/subzone` */
  locality: string(),
  weight: uint32(),
  serviceAccount: string(),
});

/** Schema of the status of a WorkloadEntry: its agent reports its health there. */
export const workloadEntryStatusSchema = message({
  conditions: list(
    message({
      type: string(),
      status: string(),
      reason: string(),
      message: string(),
      lastProbeTime: string(),
      lastTransitionTime: string(),
    }),
  ),
});

/** The status of a WorkloadEntry. */
export type WorkloadEntryStatus = Infer<typeof workloadEntryStatusSchema>;
/** The spec of a WorkloadEntry. */
export type WorkloadEntry = Infer<typeof workloadEntrySchema>;
