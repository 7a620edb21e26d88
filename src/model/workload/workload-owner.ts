/** Whose pods a controller makes: proxies are told it when they are injected, and endpoints are called by it. */
import type { Labels } from "../labels/labels.ts";

/** An object that pods belong to. */
export interface WorkloadOwner {
  readonly kind: string;
  readonly name: string;
  /** Where it is another than that of the controller. */
  readonly apiVersion?: string;
}

/** Jobs of a CronJob have the time in minutes or seconds behind its name. */
const SCHEDULED_JOB = /^(.+)-\d{8,10}$/;

/**
 * The workload behind the controller of a pod with these labels: a Deployment behind its ReplicaSets, a CronJob behind its
 * Jobs. Controllers in between carry the name of the workload and something behind it.
 */
export function workloadOwner({ kind, name }: WorkloadOwner, labels: Labels): WorkloadOwner {
  if (kind === "ReplicaSet") {
    const deployment = withoutHash(name, labels["pod-template-hash"]);
    if (deployment !== undefined) return { kind: "Deployment", name: deployment };
    const rollout = withoutHash(name, labels["rollouts-pod-template-hash"]);
    if (rollout !== undefined) return { kind: "Rollout", name: rollout, apiVersion: "v1alpha1" };
  }
  if (kind === "ReplicationController" && labels.deploymentconfig)
    return { kind: "DeploymentConfig", name: labels.deploymentconfig };
  const cronJob = kind === "Job" ? SCHEDULED_JOB.exec(name)?.[1] : undefined;
  return cronJob === undefined ? { kind, name } : { kind: "CronJob", name: cronJob, apiVersion: "batch/v1" };
}

/** Undefined for a name that does not end so. */
function withoutHash(name: string, hash = ""): string | undefined {
  if (hash === "" || !name.endsWith(hash)) return undefined;
  return name.endsWith(`-${hash}`) ? name.slice(0, -hash.length - 1) : name;
}
