/** What the workload of a pod is called: after whatever made the pod, since pods come and go. */
import type { Metadata } from "#config/schema/config-object.ts";
import { WORKLOAD_NAME } from "#model/labels/labels.ts";
import { workloadOwner } from "#model/workload/workload-owner.ts";

/** The name of a pod's workload: a Deployment for the pods of its ReplicaSets, a CronJob for those of its Jobs. */
export function podWorkloadName(metadata: Metadata): string {
  return metadata.labels[WORKLOAD_NAME] ?? controllerName(metadata);
}

function controllerName({ name, generateName, controller, labels }: Metadata): string {
  return generateName === undefined || controller === undefined ? name : workloadOwner(controller, labels).name;
}
