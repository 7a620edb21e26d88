import assert from "node:assert/strict";
import { test } from "node:test";
import type { LabelSelector } from "#model/labels/label-selector.ts";
import { decideInjection, type InjectionPolicy } from "./decision.ts";
import type { Metadata, PodSpec } from "./pod.ts";

const INJECT = "sidecar.istio.io/inject";

function decide(metadata: Metadata, policy: Partial<InjectionPolicy> = {}, spec: Partial<PodSpec> = {}): boolean {
  const pod = { metadata: { namespace: "ns", ...metadata }, spec: { containers: null, ...spec } };
  return decideInjection(pod, { policy: "enabled", neverInjectSelector: [], alwaysInjectSelector: [], ...policy })
    .inject;
}

test("the policy decides where nothing else does", () => {
  assert.equal(decide({}), true);
  assert.equal(decide({}, { policy: "disabled" }), false);
  assert.equal(decide({ labels: { [INJECT]: "true" } }, { policy: "off" }), false, "a policy that is a mistake");
});

test("pods on the network of their node and namespaces of the cluster are never injected", () => {
  const labels = { [INJECT]: "true" };
  assert.equal(decide({ labels }, {}, { hostNetwork: true }), false);
  for (const namespace of ["kube-system", "kube-public", "kube-node-lease", "local-path-storage"])
    assert.equal(decide({ labels, namespace }), false, namespace);
});

test("a label of the pod counts more than its annotation, and both more than the policy", () => {
  assert.equal(decide({ annotations: { [INJECT]: "false" } }), false);
  assert.equal(decide({ annotations: { [INJECT]: "true" } }, { policy: "disabled" }), true);
  assert.equal(decide({ labels: { [INJECT]: "false" }, annotations: { [INJECT]: "true" } }), false);
  assert.equal(
    decide({ labels: { [INJECT]: "" }, annotations: { [INJECT]: "false" } }),
    true,
    "an empty label asks for the policy",
  );
  assert.equal(decide({ annotations: { [INJECT]: "yes" } }), true, "neither true nor false: the policy");
});

test("selectors decide for pods that say nothing, never before always", () => {
  const app: LabelSelector = { matchLabels: { app: "a" } };
  const labels = { app: "a" };
  assert.equal(decide({ labels }, { neverInjectSelector: [app], alwaysInjectSelector: [app] }), false);
  assert.equal(decide({ labels }, { alwaysInjectSelector: [app], policy: "disabled" }), true);
  assert.equal(decide({ labels: { ...labels, [INJECT]: "true" } }, { neverInjectSelector: [app] }), true);
  assert.equal(decide({ labels }, { neverInjectSelector: [{}] }), true, "an empty selector names nobody");
});

test("selectors have expressions", () => {
  const matches = (operator: string, values?: string[], labels = { app: "a" }) => {
    const expression = { key: "app", operator, ...(values === undefined ? {} : { values }) };
    return decide({ labels }, { policy: "disabled", alwaysInjectSelector: [{ matchExpressions: [expression] }] });
  };
  assert.deepEqual([matches("In", ["a", "b"]), matches("NotIn", ["a"]), matches("NotIn", ["b"])], [true, false, true]);
  assert.deepEqual([matches("Exists"), matches("DoesNotExist")], [true, false]);
  assert.deepEqual(
    [matches("In", []), matches("Exists", ["a"]), matches("Like", ["a"])],
    [false, false, false],
    "not valid",
  );
});
