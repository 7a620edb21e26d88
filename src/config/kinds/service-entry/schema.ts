/** networking.istio.io ServiceEntry: a service that no registry knows, inside or outside the mesh. */
import { type Infer, list, map, message, required } from "../../schema/message.ts";
import { enumeration, string, uint32 } from "../../schema/scalars.ts";
import { workloadEntrySchema } from "../workload-entry/schema.ts";

const servicePortSchema = message({
  number: required(uint32()),
  protocol: string(),
  name: required(string()),
  targetPort: uint32(),
});

/** Schema of the spec of a ServiceEntry. */
export const serviceEntrySchema = message({
  hosts: required(list(string())),
  addresses: list(string()),
  ports: list(servicePortSchema),
  /** MESH_EXTERNAL when unset. */
  location: enumeration("MESH_EXTERNAL", "MESH_INTERNAL"),
  /** NONE when unset. */
  resolution: enumeration("NONE", "STATIC", "DNS", "DNS_ROUND_ROBIN", "DYNAMIC_DNS"),
  endpoints: list(workloadEntrySchema),
  workloadSelector: message({ labels: map(string()) }),
  exportTo: list(string()),
  subjectAltNames: list(string()),
});

/** Schema of the status of a ServiceEntry: addresses that were allocated for its hosts. */
export const serviceEntryStatusSchema = message({
  addresses: list(message({ host: string(), value: string() })),
});

/** The status of a ServiceEntry. */
export type ServiceEntryStatus = Infer<typeof serviceEntryStatusSchema>;
/** The spec of a ServiceEntry. */
export type ServiceEntry = Infer<typeof serviceEntrySchema>;
