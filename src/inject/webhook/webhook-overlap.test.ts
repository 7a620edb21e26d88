import assert from "node:assert/strict";
import { test } from "node:test";
import { overlappingWebhooks } from "./webhook-overlap.ts";

const expression = (key: string, operator: string, ...values: string[]) => ({ key, operator, values });
const named = (revision: string) => ({
  name: "rev.namespace.sidecar-injector.istio.io",
  namespaceSelector: { matchExpressions: [expression("istio.io/rev", "In", revision)] },
  objectSelector: { matchExpressions: [expression("sidecar.istio.io/inject", "NotIn", "false")] },
});
const ENABLED = {
  name: "namespace.sidecar-injector.istio.io",
  namespaceSelector: { matchLabels: { "istio-injection": "enabled" } },
};

test("overlappingWebhooks() finds pods that two configurations would inject", () => {
  const first = { metadata: { name: "first", labels: { "istio.io/rev": "a" } }, webhooks: [named("a"), ENABLED] };
  const second = { metadata: { name: "second" }, webhooks: [ENABLED] };
  assert.deepEqual(overlappingWebhooks([first, second], "second"), [
    ["first/namespace.sidecar-injector.istio.io"],
    ["first/namespace.sidecar-injector.istio.io", "first/rev.namespace.sidecar-injector.istio.io"],
  ]);
});

test("overlappingWebhooks() finds nothing where each pod is of one configuration", () => {
  const configurations = ["a", "b"].map((revision) => ({ metadata: { name: revision }, webhooks: [named(revision)] }));
  assert.deepEqual(overlappingWebhooks(configurations, "a"), []);
  const broken = { ...named("a"), objectSelector: { matchExpressions: [expression("x", "Sounds")] } };
  assert.deepEqual(overlappingWebhooks([...configurations, { metadata: { name: "c" }, webhooks: [broken] }], "c"), []);
});

test("overlappingWebhooks() takes a webhook without selectors for one that matches all", () => {
  const all = { metadata: { name: "all" }, webhooks: [{ name: "x.istio.io" }] };
  const one = { metadata: { name: "one" }, webhooks: [named("a")] };
  assert.deepEqual(overlappingWebhooks([all, one], "one"), [["all/x.istio.io"]]);
});
