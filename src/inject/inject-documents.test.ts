import assert from "node:assert/strict";
import { test } from "node:test";
import { readDocuments } from "#lib/yaml/read.ts";
import { injectDocuments } from "./inject-documents.ts";
import { testInjector } from "./injector/fixture.ts";
import { InjectionError } from "./injector/injection-error.ts";

const TEMPLATE = "metadata: {labels: {injected: {{ .TypeMeta.Kind | quote }}}}";
const options = { injector: testInjector({ config: { templates: { sidecar: TEMPLATE } } }), nativeSidecars: false };
const SERVICE = `# a service
apiVersion: v1
kind: Service
metadata: {name: s} # kept as it is
`;

function workload(kind: string, spec = "{template: {spec: {containers: [{name: a}]}}}"): string {
  return `apiVersion: apps/v1\nkind: ${kind}\nmetadata: {name: w, namespace: ns}\nspec: ${spec}\n`;
}

test("injectDocuments() leaves what holds no pod to the letter", () => {
  const { text, warnings } = injectDocuments(
    `---\n${SERVICE}---\n# only a comment\n---\n${SERVICE.trimEnd()}`,
    options,
  );
  assert.equal(text, `---\n${SERVICE}---\n# only a comment\n---\n${SERVICE}---\n`);
  assert.deepEqual(warnings, []);
});

test("injectDocuments() cuts documents as Kubernetes' tools do", () => {
  const textOf = (text: string) => injectDocuments(text, options).text;
  assert.equal(textOf(""), "");
  assert.equal(textOf("---\n"), "---\n---\n");
  assert.equal(
    textOf(`--- # first\n${SERVICE}---\n---\n${SERVICE}---`),
    `--- # first\n${SERVICE}---\n---\n${SERVICE}---\n`,
  );
  assert.equal(textOf(`${SERVICE}---\n\n--- \n`), `${SERVICE}---\n\n---\n`);
  assert.equal(textOf(SERVICE.replaceAll("\n", "\r\n")), `${SERVICE}---\n`);
  assert.throws(() => textOf(`${SERVICE}--- {a: b}\n`), /line 5 is not YAML: "\{a: b\}" stands behind the dashes/);
});

for (const kind of ["Deployment", "DaemonSet", "ReplicaSet", "StatefulSet", "Job", "ReplicationController"]) {
  test(`injectDocuments() injects into the template of a ${kind}`, () => {
    const [document] = readDocuments(injectDocuments(workload(kind), options).text);
    assert.match(
      JSON.stringify(document?.value),
      new RegExp(`"template":{"metadata":{.*"labels":{"injected":"${kind}"}}`),
    );
  });
}

test("injectDocuments() injects into pods, jobs of cron jobs and items of lists", () => {
  const cron = workload(
    "CronJob",
    "{schedule: '* * * * *', jobTemplate: {spec: {template: {spec: {containers: [{name: a}]}}}}}",
  );
  const list =
    "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a}]}}\n- {kind: Service}\n";
  const [first, second] = readDocuments(injectDocuments(`${cron}---\n${list}`, options).text).map(({ value }) => value);
  assert.match(JSON.stringify(first), /"jobTemplate":\{"metadata":\{.*"injected":"CronJob"/);
  const { items } = second as { items: readonly object[] };
  assert.match(JSON.stringify(items[0]), /"injected":"Pod"/);
  assert.deepEqual(items[1], { kind: "Service" });
});

test("injectDocuments() says what it left out and why", () => {
  const host = workload("Deployment", "{template: {spec: {hostNetwork: true, containers: []}}}");
  const off = workload(
    "Job",
    "{template: {metadata: {labels: {sidecar.istio.io/inject: 'false'}}, spec: {containers: []}}}",
  );
  assert.deepEqual(injectDocuments(`${host}---\n${off}`, options).warnings, [
    '===> Skipping injection because Deployment "ns/w" has host networking enabled',
    '===> Skipping injection because Job "ns/w" has sidecar injection disabled',
  ]);
});

test("injectDocuments() says when a pod's own word about injection is none", () => {
  const labels = "{labels: {sidecar.istio.io/inject: 'True'}}";
  const text = workload("Deployment", `{template: {metadata: ${labels}, spec: {containers: []}}}`);
  assert.deepEqual(injectDocuments(text, options).warnings, [
    'Deployment "ns/w": sidecar.istio.io/inject is "True", which says nothing: write "true" or "false"',
  ]);
});

test("injectDocuments() leaves out what an API server writes into the metadata of lists", () => {
  const { text } = injectDocuments("kind: List\nmetadata: {resourceVersion: ''}\nitems: []\n", options);
  assert.equal(text, "items: []\nkind: List\nmetadata: {}\n---\n");
});

test("injectDocuments() refuses what it cannot read and names it", () => {
  const refused = (text: string, message: RegExp) =>
    assert.throws(
      () => injectDocuments(text, options),
      (thrown) => thrown instanceof InjectionError && message.test(thrown.message),
    );
  refused(`${SERVICE}---\na: [`, /^line \d+ is not YAML/);
  refused("just text\n", /^the document from line 1 is no object of Kubernetes, but "just text"/);
  refused("# a comment\n- a\n", /^the document from line 1 is no object of Kubernetes, but a list/);
  refused(
    workload("Deployment", "{template: {spec: {containers: none}}}"),
    /Deployment "w": spec\.template\.spec\.containers must be a list/,
  );
  refused(workload("Deployment", "{replicas: two}"), /Deployment "w": spec\.replicas must be a whole number/);
});
