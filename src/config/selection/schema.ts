/** How policies name the workloads or objects that they apply to. */
import { type Infer, map, message, required } from "../schema/message.ts";
import { string } from "../schema/scalars.ts";

/** Selects workloads by labels; no labels select all of the namespace. */
export const workloadSelectorSchema = message({ matchLabels: map(string()) });

/** Selects workloads of the object's own namespace; no labels select all of them. */
export const labelSelectorSchema = message({ labels: map(string()) });

/** Schema of one entry of `targetRefs`. */
export const targetReferenceSchema = message({
  group: string(),
  kind: required(string()),
  name: required(string()),
  namespace: string(),
});

/** Labels that a workload has to carry. */
export type WorkloadSelector = Infer<typeof workloadSelectorSchema>;
/** An object named by group, kind and name. */
export type TargetReference = Infer<typeof targetReferenceSchema>;
