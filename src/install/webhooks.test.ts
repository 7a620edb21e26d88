import assert from "node:assert/strict";
import { test } from "node:test";
import { type LabelSelector, matchesSelector } from "#model/labels/label-selector.ts";
import { at, installed } from "./fixture.ts";
import { webhooksOf } from "./tag-objects.ts";

type Labels = Readonly<Record<string, string>>;

/** Names of the webhooks that an API server would ask about a pod. */
async function asked(set: readonly string[], namespace: Labels, pod: Labels): Promise<readonly string[]> {
  const hooks = [...(await installed(...set)).values()].filter(({ kind }) => kind === "MutatingWebhookConfiguration");
  const matching = hooks
    .flatMap(webhooksOf)
    .filter(
      ({ namespaceSelector, objectSelector }) =>
        matchesSelector(namespaceSelector as LabelSelector, namespace) &&
        matchesSelector(objectSelector as LabelSelector, pod),
    );
  return matching.map(({ name }) => String(name).replace("sidecar-injector.istio.io", ""));
}

const INJECT = "sidecar.istio.io/inject";
const CANARY = ["revision=canary"];
const ALL = ["sidecarInjectorWebhook.enableNamespacesByDefault=true"];
const TAGGED = ["revision=canary", "revisionTags={prod}"];

for (const [set, namespace, pod, webhooks] of [
  [[], {}, {}, []],
  [[], { "istio-injection": "enabled" }, {}, ["namespace."]],
  [[], { "istio-injection": "enabled" }, { [INJECT]: "false" }, []],
  [[], { "istio-injection": "disabled" }, { [INJECT]: "true" }, []],
  [[], {}, { [INJECT]: "true" }, ["object."]],
  [[], { "istio.io/rev": "default" }, {}, ["rev.namespace."]],
  [[], { "istio.io/rev": "canary" }, {}, []],
  [[], {}, { "istio.io/rev": "default" }, ["rev.object."]],
  [CANARY, { "istio.io/rev": "canary" }, {}, ["rev.namespace."]],
  [CANARY, { "istio.io/rev": "canary", "istio-injection": "enabled" }, {}, []],
  [CANARY, {}, { "istio.io/rev": "canary", [INJECT]: "true" }, ["rev.object."]],
  [CANARY, { "istio-injection": "enabled" }, {}, []],
  [ALL, {}, {}, ["auto."]],
  [ALL, { "kubernetes.io/metadata.name": "kube-system" }, {}, []],
  [TAGGED, { "istio.io/rev": "prod" }, {}, ["rev.namespace."]],
  [TAGGED, {}, { "istio.io/rev": "prod" }, ["rev.object."]],
  [TAGGED, { "istio.io/rev": "canary" }, {}, ["rev.namespace."]],
] as const satisfies readonly (readonly [readonly string[], Labels, Labels, readonly string[]])[])
  test(`one webhook at most is asked about a pod: ${JSON.stringify([set, namespace, pod])}`, async () => {
    assert.deepEqual(await asked(set, namespace, pod), webhooks);
  });

test("the control plane's own pods are never held up by their webhook", async () => {
  const labels = at(
    (await installed()).get("Deployment/istio-system/istiod"),
    "spec",
    "template",
    "metadata",
    "labels",
  );
  assert.deepEqual(await asked([], { "istio-injection": "enabled" }, labels as Labels), []);
});

test("names and services follow revision and namespace", async () => {
  const objects = await installed("revision=r1", "values.global.istioNamespace=mesh");
  const injection = objects.get("MutatingWebhookConfiguration/istio-sidecar-injector-r1-mesh");
  const service = { name: "istiod-r1", namespace: "mesh", path: "/inject", port: 443 };
  assert.deepEqual(at(injection, "webhooks", 0, "clientConfig"), { service });
  assert.ok(objects.has("ValidatingWebhookConfiguration/istio-validator-r1-mesh"));
  assert.ok(!objects.has("ValidatingWebhookConfiguration/istiod-default-validator"));
});

test("webhooks lead elsewhere where somebody says so", async () => {
  const objects = await installed(
    "istiodRemote.injectionURL=https://far/inject",
    "istiodRemote.injectionCABundle=Zm9v",
    "base.validationURL=https://far/validate",
  );
  const injection = objects.get("MutatingWebhookConfiguration/istio-sidecar-injector");
  assert.deepEqual(at(injection, "webhooks", 0, "clientConfig"), { url: "https://far/inject", caBundle: "Zm9v" });
  const validation = objects.get("ValidatingWebhookConfiguration/istio-validator-istio-system");
  assert.deepEqual(at(validation, "webhooks", 0, "clientConfig"), { url: "https://far/validate" });
});

test("validation holds up security objects alone while there is no certificate", async () => {
  const validation = async (...set: string[]) =>
    (await installed(...set)).get("ValidatingWebhookConfiguration/istiod-default-validator");
  const first = await validation();
  const shown = (i: number) => ["name", "failurePolicy"].map((field) => at(first, "webhooks", i, field));
  assert.deepEqual(
    [shown(0), shown(1)],
    [
      ["validation.istio.io", "Ignore"],
      ["security.validation.istio.io", "Fail"],
    ],
  );
  assert.ok(!JSON.stringify(at(first, "webhooks", 0, "rules")).includes("security.istio.io"));
  assert.deepEqual(at(first, "webhooks", 1, "rules", 0, "apiGroups"), ["security.istio.io"]);
  assert.equal(at(await validation("base.validationFailurePolicy=Ignore"), "webhooks", 1, "failurePolicy"), "Ignore");
  assert.equal(at(await validation("base.validationCABundle=Zm9v"), "webhooks", 0, "failurePolicy"), "Fail");
  assert.equal(at(await validation("base.validationFailurePolicy=Fail"), "webhooks", 0, "failurePolicy"), "Fail");
  assert.equal(await validation("global.configValidation=false"), undefined);
  assert.notEqual(await validation("revision=a", "defaultRevision=a"), undefined);
});
