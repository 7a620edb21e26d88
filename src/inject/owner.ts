/** The object that a pod belongs to, from what the pod itself shows: its controller and how its name was made. */
import type { OwnerReference, Pod } from "./pod.ts";

/** What a workload is called and what kind of object it is. */
export interface Owner {
  readonly name: string;
  readonly namespace: string;
  readonly kind: string;
  readonly apiVersion: string;
}

const CRON_JOB_RUN = /^(.+)-\d{8,10}$/;

/** The workload of a pod. A pod with a name of its own is its own workload. */
export function ownerOf({ metadata }: Pod): Owner {
  const { name = "", namespace = "", generateName = "", ownerReferences = [], labels = {} } = metadata;
  const pod: Owner = { name, namespace, kind: "Pod", apiVersion: "v1" };
  const controller = ownerReferences.find((reference) => reference.controller === true);
  if (generateName === "" || controller === undefined) return pod;
  const owner = { ...pod, ...workloadOf(controller, labels) };
  return owner.name === "" ? { ...owner, name } : owner;
}

/** Controllers in between carry the name of the workload and something behind it. */
function workloadOf(
  { kind, name, apiVersion }: OwnerReference,
  labels: Readonly<Record<string, string>>,
): Omit<Owner, "namespace"> {
  const without = (label: string): string | undefined => {
    const hash = labels[label] ?? "";
    if (hash === "" || !name.endsWith(hash)) return undefined;
    return name.endsWith(`-${hash}`) ? name.slice(0, -hash.length - 1) : name;
  };
  if (kind === "ReplicaSet") {
    const deployment = without("pod-template-hash");
    if (deployment !== undefined) return { kind: "Deployment", name: deployment, apiVersion };
    const rollout = without("rollouts-pod-template-hash");
    if (rollout !== undefined) return { kind: "Rollout", name: rollout, apiVersion: "v1alpha1" };
  }
  if (kind === "ReplicationController" && (labels.deploymentconfig ?? "") !== "")
    return { kind: "DeploymentConfig", name: labels.deploymentconfig ?? "", apiVersion };
  const cronJob = kind === "Job" ? CRON_JOB_RUN.exec(name)?.[1] : undefined;
  return cronJob === undefined
    ? { kind, name, apiVersion }
    : { kind: "CronJob", name: cronJob, apiVersion: "batch/v1" };
}
