import { kind } from "../kind.ts";
import { checkWorkloadGroup } from "./check.ts";
import { workloadGroupSchema } from "./schema.ts";

/** networking.istio.io WorkloadGroup. */
export const workloadGroupKind = kind({
  group: "networking.istio.io",
  name: "WorkloadGroup",
  plural: "workloadgroups",
  versions: ["v1", "v1beta1", "v1alpha3"],
  schema: workloadGroupSchema,
  check: checkWorkloadGroup,
  crd: {
    shortName: "wg",
    description: "A model for the entries of workloads that register themselves",
    needsSpec: true,
  },
});
