import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import { type Chart, readChart } from "./chart.ts";
import { objectName } from "./difference.ts";
import { at, installed, MANIFESTS } from "./fixture.ts";
import { deactivated, isDefaultInjection, tagObjects, webhooksOf } from "./tag-objects.ts";

describe("tagObjects()", () => {
  let chart: Chart;
  let canary: RawObject;
  before(async () => {
    chart = await readChart(join(MANIFESTS, "chart"));
    const objects = await installed("revision=canary");
    const found = objects.get("MutatingWebhookConfiguration/istio-sidecar-injector-canary");
    assert.ok(found);
    canary = found;
  });
  const request = { tag: "prod", revision: "canary", namespace: "istio-system" };
  const withClient = (clientConfig: object): RawObject => ({
    ...canary,
    webhooks: [{ name: "rev.namespace.sidecar-injector.istio.io", clientConfig }],
  });

  test("gives a webhook and a Service that lead to the revision", () => {
    const [webhook, service, ...others] = tagObjects(request, { chart, injection: canary });
    assert.deepEqual(others, []);
    assert.ok(webhook && service);
    assert.equal(objectName(webhook), "MutatingWebhookConfiguration/istio-revision-tag-prod");
    assert.equal(objectName(service), "Service/istio-system/istiod-revision-tag-prod");
    assert.deepEqual(at(webhook, "webhooks", 0, "clientConfig", "service", "name"), "istiod-canary");
    assert.deepEqual(at(webhook, "webhooks", 0, "namespaceSelector", "matchExpressions", 0, "values"), ["prod"]);
    assert.deepEqual(at(service, "spec", "selector"), { app: "istiod", "istio.io/rev": "canary" });
    for (const { metadata } of [webhook, service]) {
      assert.equal(metadata.labels?.["istio.io/tag"], "prod");
      assert.equal(metadata.labels?.["istio.io/rev"], "canary");
      assert.doesNotMatch(JSON.stringify(metadata.labels), /operator\.istio\.io|mizzen\.dev/);
    }
  });

  test("leads where the webhook of the revision leads, with its roots", () => {
    const service = { name: "other", namespace: "istio-system", path: "/inject/cluster/c", port: 443 };
    const [byService] = tagObjects(request, { chart, injection: withClient({ service, caBundle: "Zm9v" }) });
    assert.deepEqual(at(byService, "webhooks", 1, "clientConfig"), { service, caBundle: "Zm9v" });
    const injection = withClient({ url: "https://far:15017/inject" });
    const byUrl = tagObjects({ ...request, tag: "default" }, { chart, injection });
    assert.deepEqual(at(byUrl[0], "webhooks", 0, "clientConfig"), { url: "https://far:15017/inject" });
    assert.deepEqual(at(byUrl[1], "webhooks", 0, "clientConfig"), { url: "https://far:15017/validate" });
  });

  test("the tag default is for all that name none, and checks their objects", () => {
    const tagged = { ...request, tag: "default", allNamespaces: true, webhookName: "mine" };
    const [webhook, validator, service] = tagObjects(tagged, { chart, injection: canary });
    assert.ok(webhook);
    assert.equal(webhook.metadata.name, "mine");
    assert.deepEqual(
      webhooksOf(webhook).map(({ name }) => String(name).replace("sidecar-injector.istio.io", "")),
      ["rev.namespace.", "rev.object.", "namespace.", "object.", "auto."],
    );
    assert.equal(validator?.metadata.name, "istiod-default-validator");
    assert.equal(validator?.metadata.labels?.["istio.io/tag"], "default");
    assert.equal(at(validator, "webhooks", 0, "failurePolicy"), "Ignore");
    assert.equal(service?.metadata.name, "istiod-revision-tag-default");
  });

  test("a validation that may fail already goes on failing", () => {
    const validation = { metadata: { name: "v" }, webhooks: [{ name: "validation.istio.io", failurePolicy: "Fail" }] };
    const [, validator] = tagObjects({ ...request, tag: "default" }, { chart, injection: canary, validation });
    assert.equal(at(validator, "webhooks", 0, "failurePolicy"), undefined);
  });

  test("a tag of an installation goes with it, and no upgrade takes it away", () => {
    const [webhook] = tagObjects({ ...request, owner: "canary" }, { chart, injection: canary });
    assert.equal(webhook?.metadata.labels?.["install.mizzen.dev/revision"], "canary");
    assert.equal(webhook?.metadata.labels?.["install.operator.istio.io/owning-resource-not-pruned"], "true");
  });

  test("deactivated() webhooks match nothing", async () => {
    const object = (await installed()).get("MutatingWebhookConfiguration/istio-sidecar-injector");
    assert.ok(object && isDefaultInjection(object) && !isDefaultInjection(canary));
    const never = { matchLabels: { "istio.io/deactivated": "never-match" } };
    assert.deepEqual(at(deactivated(object), "webhooks", 3, "namespaceSelector"), never);
  });
});
