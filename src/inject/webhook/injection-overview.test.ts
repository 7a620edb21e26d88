import assert from "node:assert/strict";
import { test } from "node:test";
import { hookRows, injectableNamespaces, revisionRows } from "./injection-overview.ts";

const namespace = (name: string, labels: Record<string, string> = {}) => ({ metadata: { name, labels } });
const hook = (name: string, revision: string, label: string, value: string) => ({
  metadata: { name, labels: { "istio.io/rev": revision } },
  webhooks: [
    {
      name: "namespace.sidecar-injector.istio.io",
      namespaceSelector: { matchExpressions: [{ key: label, operator: "In", values: [value] }] },
    },
  ],
});
const HOOKS = [hook("b", "default", "istio-injection", "enabled"), hook("a", "canary", "istio.io/rev", "canary")];
const pod = (inNamespace: string, revision?: string, labels: Record<string, string> = {}) => ({
  metadata: {
    namespace: inNamespace,
    labels,
    annotations: revision === undefined ? {} : { "sidecar.istio.io/status": JSON.stringify({ revision }) },
  },
});

test("injectableNamespaces() leaves out those of the cluster, of the mesh, and of ambient", () => {
  const ambient = { "istio.io/dataplane-mode": "ambient" };
  const names = injectableNamespaces(
    [
      namespace("z"),
      namespace("kube-system"),
      namespace("istio-system"),
      namespace("m", ambient),
      namespace("n", { ...ambient, "istio.io/rev": "canary" }),
      namespace("a", { ...ambient, "istio-injection": "enabled" }),
    ],
    "istio-system",
  ).map(({ metadata }) => metadata.name);
  assert.deepEqual(names, ["a", "n", "z"]);
});

test("revisionRows() counts pods by revision, and those that a restart would change", () => {
  const rows = revisionRows([namespace("shop", { "istio-injection": "enabled" })], HOOKS, [
    pod("shop", "default"),
    pod("shop", "canary"),
    pod("shop"),
    pod("shop", undefined, { "sidecar.istio.io/inject": "False" }),
    pod("elsewhere"),
  ]);
  const row = { namespace: "shop", revision: "default", disabled: 0, needsRestart: 0, pods: 1 };
  assert.deepEqual(rows, [
    { ...row, podRevision: "", pods: 2, disabled: 1, needsRestart: 1 },
    { ...row, podRevision: "canary", needsRestart: 1 },
    { ...row, podRevision: "default" },
  ]);
});

test("revisionRows() names revisions that are missing, and nothing where nobody asks for injection", () => {
  const namespaces = [
    namespace("a", { "istio.io/rev": "gone" }),
    namespace("b", { "istio-injection": "yes" }),
    namespace("c", { "istio-injection": "disabled" }),
    namespace("d"),
  ];
  assert.deepEqual(
    revisionRows(namespaces, HOOKS, []).map((row) => [row.namespace, row.revision]),
    [
      ["a", "MISSING/gone"],
      ["b", "MISSING/istio-injection"],
    ],
  );
});

test("hookRows() shows namespaces and images of each hook, by name", () => {
  const rows = hookRows([namespace("shop", { "istio-injection": "enabled" })], HOOKS, new Map([["default", "h/p:1"]]));
  assert.deepEqual(rows, [
    { namespace: undefined, hook: "a", revision: "canary", image: "" },
    { namespace: "shop", hook: "b", revision: "default", image: "h/p:1" },
  ]);
});
