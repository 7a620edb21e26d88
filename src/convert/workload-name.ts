/** What the workload of a pod is called: after whatever made the pod, since pods come and go. */
import type { Metadata } from "#config/config-object.ts";

const WORKLOAD_NAME = "service.istio.io/workload-name";
const TEMPLATE_HASHES = ["pod-template-hash", "rollouts-pod-template-hash"];
const DEPLOYMENT_CONFIG = "deploymentconfig";
/** Jobs of a CronJob have the time in minutes or seconds behind its name. */
const SCHEDULED_JOB = /^(.+)-\d{8,10}$/;

/** The name of a pod's workload: a Deployment for the pods of its ReplicaSets, a CronJob for those of its Jobs. */
export function podWorkloadName(metadata: Metadata): string {
  return metadata.labels[WORKLOAD_NAME] ?? controllerName(metadata);
}

function controllerName({ name, generateName, controller, labels }: Metadata): string {
  if (generateName === undefined || controller === undefined) return name;
  switch (controller.kind) {
    case "ReplicaSet":
      return withoutHash(controller.name, labels);
    case "ReplicationController":
      return labels[DEPLOYMENT_CONFIG] || controller.name;
    case "Job":
      return SCHEDULED_JOB.exec(controller.name)?.[1] ?? controller.name;
    default:
      return controller.name;
  }
}

function withoutHash(name: string, labels: Metadata["labels"]): string {
  const hash = TEMPLATE_HASHES.map((label) => labels[label]).find((value) => value && name.endsWith(value));
  return hash !== undefined && name.endsWith(`-${hash}`) ? name.slice(0, -hash.length - 1) : name;
}
