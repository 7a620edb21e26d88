import assert from "node:assert/strict";
import { test } from "node:test";
import { at, installed } from "./fixture.ts";
import { withTexts } from "./text-fields.ts";

const DEPLOYMENT = "Deployment/istio-system/istiod";
const SERVICE = "Service/istio-system/istiod";
const GATEWAY = "Service/istio-system/istio-ingressgateway";

for (const [setting, object, path, text] of [
  ["values.pilot.podAnnotations.x=true", DEPLOYMENT, ["spec", "template", "metadata", "annotations", "x"], "true"],
  ["values.pilot.podLabels.x=5", DEPLOYMENT, ["spec", "template", "metadata", "labels", "x"], "5"],
  ["values.pilot.nodeSelector.x=true", DEPLOYMENT, ["spec", "template", "spec", "nodeSelector", "x"], "true"],
  ["values.pilot.deploymentLabels.x=5", DEPLOYMENT, ["metadata", "labels", "x"], "5"],
  ["values.pilot.serviceAnnotations.x=5", SERVICE, ["metadata", "annotations", "x"], "5"],
  ["values.gateways.istio-ingressgateway.labels.x=5", GATEWAY, ["spec", "selector", "x"], "5"],
  ["components.pilot.k8s.serviceAnnotations.x=true", SERVICE, ["metadata", "annotations", "x"], "true"],
] as const) {
  test(`--set ${setting} is text where Kubernetes wants text`, async () => {
    assert.equal(at((await installed(setting)).get(object), ...path), text);
  });
}

test("withTexts() changes variables, and nothing that may be a number", () => {
  const pod = (value: unknown) => ({
    kind: "Pod",
    metadata: { name: "a", labels: { n: "1" } },
    spec: { hostNetwork: true, priority: 7, containers: [{ name: "c", env: [{ name: "A", value }, { name: "B" }] }] },
  });
  assert.deepEqual(withTexts(pod(true)), pod("true"));
});

test("withTexts() leaves definitions of kinds as they are", () => {
  const schema = { properties: { labels: { "x-kubernetes-preserve-unknown-fields": true } } };
  const definition = { kind: "CustomResourceDefinition", metadata: { name: "a" }, spec: { schema } };
  assert.deepEqual(withTexts(definition), definition);
});
