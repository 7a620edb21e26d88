import { kind } from "../kind.ts";
import { checkWorkloadEntry } from "./check.ts";
import { workloadEntrySchema, workloadEntryStatusSchema } from "./schema.ts";

/** networking.istio.io WorkloadEntry. */
export const workloadEntryKind = kind({
  group: "networking.istio.io",
  name: "WorkloadEntry",
  plural: "workloadentries",
  versions: ["v1", "v1beta1", "v1alpha3"],
  schema: workloadEntrySchema,
  status: workloadEntryStatusSchema,
  check: checkWorkloadEntry,
  crd: {
    shortName: "we",
    description: "A workload that is no pod, such as a virtual machine",
    columns: [{ name: "Address", jsonPath: ".spec.address", description: "Where the workload is" }],
    needsSpec: true,
  },
});
