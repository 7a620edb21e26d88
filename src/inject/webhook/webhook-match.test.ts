import assert from "node:assert/strict";
import { test } from "node:test";
import { injectedRevision, matchWebhooks, refusesInjection } from "./webhook-match.ts";

const DEFAULT = {
  metadata: { name: "b", labels: { "istio.io/rev": "default" } },
  webhooks: [
    {
      name: "namespace.sidecar-injector.istio.io",
      namespaceSelector: { matchExpressions: [{ key: "istio-injection", operator: "In", values: ["enabled"] }] },
      objectSelector: { matchExpressions: [{ key: "sidecar.istio.io/inject", operator: "NotIn", values: ["false"] }] },
    },
  ],
};
const never = { matchLabels: { "istio.io/deactivated": "never-match" } };
const OFF = {
  metadata: { name: "a" },
  webhooks: [{ name: "x.istio.io", namespaceSelector: never, objectSelector: never }],
};
const FOREIGN = { metadata: { name: "c" }, webhooks: [{ name: "x.example.com" }] };

function reasons(pod: Record<string, string>, namespace: Record<string, string>): readonly string[] {
  return matchWebhooks([DEFAULT, OFF, FOREIGN], pod, namespace).map(({ injected, reason }) => `${injected} ${reason}`);
}

test("matchWebhooks() says of each configuration of Istio whether and why", () => {
  const off = "false The injection webhook is deactivated, and will never match labels.";
  assert.deepEqual(reasons({}, { "istio-injection": "enabled" }), [
    off,
    "true Namespace label istio-injection=enabled matches",
  ]);
  assert.deepEqual(reasons({ "sidecar.istio.io/inject": "false" }, { "istio-injection": "enabled" }), [
    off,
    "false Pod has sidecar.istio.io/inject=false label, preventing injection",
  ]);
  assert.deepEqual(reasons({}, {}), [
    off,
    "false No matching namespace labels (istio-injection=enabled) or pod labels ()",
  ]);
  assert.deepEqual(reasons({}, { "istio-injection": "disabled" }), [
    off,
    "false Namespace has istio-injection=disabled label, preventing injection",
  ]);
});

test("a pod tells which revision injected it and whether it refuses", () => {
  assert.equal(injectedRevision({ annotations: { "sidecar.istio.io/status": '{"revision":"r1"}' } }), "r1");
  assert.equal(injectedRevision({ annotations: { "sidecar.istio.io/status": "{" } }), "");
  assert.equal(
    refusesInjection({
      labels: { "sidecar.istio.io/inject": "true" },
      annotations: { "sidecar.istio.io/inject": "false" },
    }),
    false,
  );
});
