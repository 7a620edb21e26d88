/** networking.istio.io WorkloadEntry: one workload outside a pod, such as a virtual machine or a process on this one. */
import { field, rule } from "../../schema/field.ts";
import { type Infer, list, map, message } from "../../schema/message.ts";
import { portNumber, string, uint32 } from "../../schema/scalars.ts";

const PORT_NAME = "^[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?$";
const SOCKET_PATH = rule(
  '!self.startsWith("unix://") || self.substring(7, 8) in ["/", "@"]',
  "UDS must be an absolute path or abstract socket",
);
const NO_DIRECTORY = rule('!self.startsWith("unix://") || !self.endsWith("/")', "UDS may not be a dir");
const PORT_NAMES = rule(`self.all(key, size(key) < 63 && key.matches("${PORT_NAME}"))`, "port name must be valid");
const NO_PORTS_OF_SOCKETS = rule(
  '!has(self.address) || !self.address.startsWith("unix://") || !has(self.ports)',
  "UDS may not include ports",
);
const ADDRESS_OR_NETWORK = rule("has(self.address) || has(self.network)", "Address is required");

const workloadSchema = message({
  address: field(string(), {
    description: "An address, a name or the path of a socket",
    maxLength: 256,
    rules: [SOCKET_PATH, NO_DIRECTORY],
  }),
  /** Port number by the name of the service port it serves. */
  ports: field(map(portNumber()), {
    description: "Numbers of named ports, where they are others than the service's",
    maxProperties: 128,
    rules: [PORT_NAMES],
  }),
  labels: field(map(string()), { description: "By these services select it", maxProperties: 256 }),
  network: field(string(), {
    description: "The network it is in: those of one network reach each other",
    maxLength: 2048,
  }),
  locality: field(string(), { description: "region/zone/subzone", maxLength: 2048 }),
  weight: field(uint32(), { description: "Its share of the traffic" }),
  serviceAccount: field(string(), { description: "Its identity", maxLength: 253 }),
});

/** Schema of the spec of a WorkloadEntry; a ServiceEntry lists its endpoints in the same form. */
export const workloadEntrySchema = field(workloadSchema, { rules: [ADDRESS_OR_NETWORK, NO_PORTS_OF_SOCKETS] });

/** Schema of the workload that a WorkloadGroup makes entries from: it has no address yet. */
export const workloadTemplateSchema = field(workloadSchema, { isBrief: true, rules: [NO_PORTS_OF_SOCKETS] });

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
