import assert from "node:assert/strict";
import { test } from "node:test";
import { ownerOf } from "./owner.ts";

function owner(kind: string, name: string, labels: Readonly<Record<string, string>> = {}): string {
  const ownerReferences = [{ apiVersion: "apps/v1", kind, name, controller: true }];
  const metadata = { generateName: "x-", namespace: "ns", labels, ownerReferences };
  const found = ownerOf({ metadata, spec: { containers: null } });
  return `${found.apiVersion} ${found.kind} ${found.name}`;
}

test("ownerOf() sees through the controllers in between", () => {
  assert.equal(owner("ReplicaSet", "web-5c7", { "pod-template-hash": "5c7" }), "apps/v1 Deployment web");
  assert.equal(owner("ReplicaSet", "web-5c7", { "rollouts-pod-template-hash": "5c7" }), "v1alpha1 Rollout web");
  assert.equal(owner("ReplicaSet", "web-5c7"), "apps/v1 ReplicaSet web-5c7");
  assert.equal(owner("ReplicationController", "web-1", { deploymentconfig: "web" }), "apps/v1 DeploymentConfig web");
  assert.equal(owner("Job", "nightly-28304880"), "batch/v1 CronJob nightly");
  assert.equal(owner("Job", "nightly-1"), "apps/v1 Job nightly-1");
  assert.equal(owner("StatefulSet", "db"), "apps/v1 StatefulSet db");
});

test("ownerOf() takes a pod with a name of its own, or without a controller, for itself", () => {
  const spec = { containers: null };
  const controller = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "r", controller: true };
  assert.equal(ownerOf({ metadata: { name: "p", ownerReferences: [controller] }, spec }).kind, "Pod");
  const orphan = { generateName: "p-", ownerReferences: [{ ...controller, controller: false }] };
  assert.deepEqual(ownerOf({ metadata: orphan, spec }), { name: "", namespace: "", kind: "Pod", apiVersion: "v1" });
});
