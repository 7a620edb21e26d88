/** networking.istio.io ServiceEntry: a service that no registry knows, inside or outside the mesh. */
import { atMostOne, field, rule } from "../../schema/field.ts";
import { type Infer, list, message, required } from "../../schema/message.ts";
import { enumeration, portNumber, string } from "../../schema/scalars.ts";
import { exportToField, labelSelectorSchema } from "../../selection/schema.ts";
import { workloadEntrySchema } from "../workload-entry/schema.ts";

const NO_WILDCARD = rule('self != "*"', "hostname cannot be wildcard");
const UNIQUE_NUMBERS = rule(
  "self.all(l1, self.exists_one(l2, l1.number == l2.number))",
  "port number cannot be duplicated",
);
const COMBINATIONS = [
  atMostOne(["workloadSelector", "endpoints"], "only one of WorkloadSelector or Endpoints can be set"),
  rule(
    '!has(self.addresses) || !self.addresses.exists(k, k.contains("/")) || !has(self.resolution) || self.resolution in ["STATIC", "NONE"]',
    "CIDR addresses are allowed only for NONE/STATIC resolution types",
  ),
  rule('has(self.resolution) && self.resolution != "NONE" || !has(self.endpoints)', "NONE mode cannot set endpoints"),
  rule(
    '!has(self.resolution) || self.resolution != "DNS_ROUND_ROBIN" || !has(self.endpoints) || self.endpoints.size() <= 1',
    "DNS_ROUND_ROBIN mode cannot have multiple endpoints",
  ),
];

const servicePortSchema = message({
  number: required(portNumber()),
  protocol: field(string(), { maxLength: 256 }),
  name: required(field(string(), { maxLength: 256 })),
  targetPort: portNumber(),
});

/** Schema of the spec of a ServiceEntry. */
export const serviceEntrySchema = field(
  message({
    hosts: required(
      field(list(field(string(), { rules: [NO_WILDCARD] })), {
        description: "Names of the service",
        minItems: 1,
        maxItems: 256,
      }),
    ),
    addresses: field(list(field(string(), { maxLength: 64 })), {
      description: "Virtual addresses, or ranges of them",
      maxItems: 256,
    }),
    ports: field(list(servicePortSchema), {
      description: "Ports of the service",
      maxItems: 256,
      listKey: "name",
      rules: [UNIQUE_NUMBERS],
    }),
    /** MESH_EXTERNAL when unset. */
    location: field(enumeration("MESH_EXTERNAL", "MESH_INTERNAL"), {
      description: "MESH_INTERNAL, with mutual TLS, or MESH_EXTERNAL",
    }),
    /** NONE when unset. */
    resolution: field(enumeration("NONE", "STATIC", "DNS", "DNS_ROUND_ROBIN", "DYNAMIC_DNS"), {
      description: "How addresses are found: NONE (where callers go), STATIC (endpoints), DNS, DNS_ROUND_ROBIN",
    }),
    endpoints: field(list(field(workloadEntrySchema, { isBrief: true })), {
      description: "Workloads behind it",
      maxItems: 4096,
    }),
    workloadSelector: labelSelectorSchema,
    exportTo: exportToField,
    subjectAltNames: field(list(string()), { description: "Identities that its servers may have" }),
  }),
  { rules: COMBINATIONS },
);

/** Schema of the status of a ServiceEntry: addresses that were allocated for its hosts. */
export const serviceEntryStatusSchema = message({
  addresses: list(message({ host: string(), value: string() })),
});

/** The status of a ServiceEntry. */
export type ServiceEntryStatus = Infer<typeof serviceEntryStatusSchema>;
/** The spec of a ServiceEntry. */
export type ServiceEntry = Infer<typeof serviceEntrySchema>;
