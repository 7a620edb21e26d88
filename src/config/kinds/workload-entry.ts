/** networking.istio.io WorkloadEntry: one workload outside a pod, such as a virtual machine or a process on this one. */
import { type Infer, map, message } from "../schema/message.ts";
import { string, uint32 } from "../schema/scalars.ts";

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

/** The spec of a WorkloadEntry. */
export type WorkloadEntry = Infer<typeof workloadEntrySchema>;
