/** The object that a pod belongs to, from what the pod itself shows: its controller and how its name was made. */
import { workloadOwner } from "#model/workload/workload-owner.ts";
import type { Pod } from "./pod.ts";

/** What a workload is called and what kind of object it is. */
export interface Owner {
  readonly name: string;
  readonly namespace: string;
  readonly kind: string;
  readonly apiVersion: string;
}

/** The workload of a pod. A pod with a name of its own is its own workload. */
export function ownerOf({ metadata }: Pod): Owner {
  const { name = "", namespace = "", generateName = "", ownerReferences = [], labels = {} } = metadata;
  const pod: Owner = { name, namespace, kind: "Pod", apiVersion: "v1" };
  const controller = ownerReferences.find((reference) => reference.controller === true);
  if (generateName === "" || controller === undefined) return pod;
  const owner = { ...pod, apiVersion: controller.apiVersion, ...workloadOwner(controller, labels) };
  return owner.name === "" ? { ...owner, name } : owner;
}
