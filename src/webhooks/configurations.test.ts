import assert from "node:assert/strict";
import { test } from "node:test";
import { type LabelSelector, matchesSelector } from "#model/label-selector.ts";
import { injectionWebhook, validationWebhook, type WebhookConfigurationInput } from "./configurations.ts";

interface Configuration {
  readonly metadata: { readonly name: string };
  readonly webhooks: readonly {
    readonly name: string;
    readonly failurePolicy: string;
    readonly clientConfig: { readonly caBundle?: string; readonly service: object };
    readonly namespaceSelector: LabelSelector;
    readonly objectSelector: LabelSelector;
  }[];
}

const INPUT: WebhookConfigurationInput = { revision: "", namespace: "istio-system", caBundle: "PEM" };
type Labels = Readonly<Record<string, string>>;

/** Names of the webhooks that an API server would ask about a pod. */
function asked(input: Partial<WebhookConfigurationInput>, namespace: Labels, pod: Labels): readonly string[] {
  const { webhooks } = injectionWebhook({ ...INPUT, ...input }) as Configuration;
  const matching = webhooks.filter(
    (webhook) => matchesSelector(webhook.namespaceSelector, namespace) && matchesSelector(webhook.objectSelector, pod),
  );
  return matching.map(({ name }) => name.replace("sidecar-injector.istio.io", ""));
}

test("one webhook at most is asked about a pod", () => {
  const inject = "sidecar.istio.io/inject";
  const cases: readonly (readonly [Partial<WebhookConfigurationInput>, Labels, Labels, readonly string[]])[] = [
    [{}, {}, {}, []],
    [{}, { "istio-injection": "enabled" }, {}, ["namespace."]],
    [{}, { "istio-injection": "enabled" }, { [inject]: "false" }, []],
    [{}, { "istio-injection": "disabled" }, { [inject]: "true" }, []],
    [{}, {}, { [inject]: "true" }, ["object."]],
    [{}, { "istio.io/rev": "default" }, {}, ["rev.namespace."]],
    [{}, { "istio.io/rev": "canary" }, {}, []],
    [{}, {}, { "istio.io/rev": "default" }, ["rev.object."]],
    [{ revision: "canary" }, { "istio.io/rev": "canary" }, {}, ["rev.namespace."]],
    [{ revision: "canary" }, { "istio.io/rev": "canary", "istio-injection": "enabled" }, {}, []],
    [{ revision: "canary" }, {}, { "istio.io/rev": "canary", [inject]: "true" }, ["rev.object."]],
    [{ revision: "canary" }, { "istio-injection": "enabled" }, {}, []],
    [{ allNamespaces: true }, {}, {}, ["auto."]],
    [{ allNamespaces: true }, { "kubernetes.io/metadata.name": "kube-system" }, {}, []],
  ];
  for (const [input, namespace, pod, webhooks] of cases)
    assert.deepEqual(asked(input, namespace, pod), webhooks, JSON.stringify([input, namespace, pod]));
});

test("the control plane's own pods are never held up by their webhook", () => {
  assert.deepEqual(
    asked({}, { "istio-injection": "enabled" }, { app: "istiod", "sidecar.istio.io/inject": "false" }),
    [],
  );
});

test("names, services and certificates follow revision and namespace", () => {
  const own = injectionWebhook({ ...INPUT, revision: "r1", namespace: "mesh" }) as Configuration;
  assert.equal(own.metadata.name, "istio-sidecar-injector-r1-mesh");
  assert.deepEqual(own.webhooks[0]?.clientConfig, {
    service: { name: "istiod-r1", namespace: "mesh", path: "/inject", port: 443 },
    caBundle: Buffer.from("PEM").toString("base64"),
  });
  const validation = validationWebhook(INPUT) as Configuration;
  assert.deepEqual(
    [validation.metadata.name, validation.webhooks[0]?.failurePolicy],
    ["istio-validator-istio-system", "Fail"],
  );
});

test("validation holds nothing up while there is no certificate", () => {
  const { webhooks } = validationWebhook({ ...INPUT, caBundle: undefined }) as Configuration;
  assert.deepEqual([webhooks[0]?.failurePolicy, webhooks[0]?.clientConfig.caBundle], ["Ignore", undefined]);
});
