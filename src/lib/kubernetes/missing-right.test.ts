import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "./api-client.ts";
import { refusalText, troubleText } from "./missing-right.ts";

const said =
  'Kubernetes PATCH /x: configmaps "a" is forbidden: User "system:serviceaccount:istio-system:istiod" cannot patch resource "configmaps" in API group "" in the namespace "shop"';
const RULE = 'add to the ClusterRole of this account: apiGroups: [""], resources: ["configmaps"], verbs: ["patch"]';

test("refusalText() names the rule for the verb that the API server refused", () => {
  assert.equal(refusalText(new ApiError(said, { status: 403, reason: "Forbidden" })), `${said}; ${RULE}`);
  const of = said.replace('"configmaps" in API group ""', '"leases/status" in API group "coordination.k8s.io"');
  assert.match(
    refusalText(new ApiError(of, { status: 403, reason: "Forbidden" })),
    /apiGroups: \["coordination.k8s.io"\], resources: \["leases\/status"\]/,
  );
});

test("refusalText() leaves other words alone", () => {
  const terminated =
    "configmaps is forbidden: unable to create new content in namespace x because it is being terminated";
  assert.equal(refusalText(new ApiError(terminated, { status: 403, reason: "Forbidden" })), terminated);
  assert.equal(refusalText(new ApiError(said, { status: 500, reason: "" })), said);
  assert.equal(refusalText(new Error(said)), said);
});

test("troubleText() names all verbs that are needed", () => {
  const type = { group: "apps", version: "v1", kind: "Deployment", plural: "deployments", namespaced: true };
  const problem = new ApiError("no", { status: 403, reason: "Forbidden" });
  assert.match(troubleText(problem, type), /resources: \["deployments"\], verbs: \["get", "list", "watch"\]$/);
  assert.match(troubleText(problem, type, ["patch"]), /verbs: \["patch"\]$/);
});
