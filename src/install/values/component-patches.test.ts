/** What an IstioOperator says under `k8s`, in the objects of an installation. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { isRecord } from "#lib/json/is-record.ts";
import { objectName } from "../difference.ts";
import { at, MANIFESTS } from "../fixture.ts";
import { manifestOf } from "../manifest.ts";
import { resolveSettings } from "../settings.ts";

const folder = mkdtempSync(join(tmpdir(), "mizzen-components-"));
after(() => rmSync(folder, { recursive: true }));

/** The objects of an IstioOperator by `Kind/namespace/name`, and what was told. */
async function installedBy(spec: object, name = "") {
  const file = join(folder, "operator.yaml");
  writeFileSync(file, JSON.stringify({ kind: "IstioOperator", metadata: { name }, spec }));
  const settings = await resolveSettings({ manifests: MANIFESTS, revision: "", files: [file], set: [] });
  const told: string[] = [];
  const objects = manifestOf(settings, (line) => told.push(line));
  return { objects: new Map(objects.map((object) => [objectName(object), object])), told };
}

const CONTAINER = ["spec", "template", "spec", "containers", "istio-proxy"] as const;

test("every field under k8s reaches the object that has it, beside what the chart says", async () => {
  const k8s = {
    affinity: { nodeAffinity: {} },
    env: [{ name: "SECRET", valueFrom: { secretKeyRef: { name: "s", key: "k" } } }],
    hpaSpec: { minReplicas: 2, maxReplicas: 9, metrics: [] },
    imagePullPolicy: "Always",
    nodeSelector: { a: "b" },
    podAnnotations: { c: "d" },
    podDisruptionBudget: { maxUnavailable: 1 },
    priorityClassName: "high",
    readinessProbe: { failureThreshold: 3 },
    replicaCount: 4,
    resources: { requests: { cpu: "1" } },
    securityContext: { fsGroup: 7 },
    service: {
      type: "NodePort",
      externalTrafficPolicy: "Local",
      ports: [{ name: "http", port: 80, targetPort: 8080 }],
    },
    serviceAnnotations: { e: "f" },
    strategy: { rollingUpdate: { maxSurge: 2 } },
    tolerations: [{ key: "k" }],
    volumes: [{ name: "v", emptyDir: {} }],
    volumeMounts: [{ name: "v", mountPath: "/v" }],
  };
  const values = { gateways: { "istio-ingressgateway": { autoscaleMin: 2 } } };
  const { objects, told } = await installedBy({ components: { ingressGateways: [{ k8s }] }, values });
  const of = (kind: string, ...path: (string | number)[]) =>
    at(objects.get(`${kind}/istio-system/istio-ingressgateway`), ...path);
  const pod = (...path: string[]) => of("Deployment", "spec", "template", "spec", ...path);
  assert.deepEqual(told, []);
  assert.deepEqual(pod("affinity"), { nodeAffinity: {} });
  assert.deepEqual(of("Deployment", ...CONTAINER, "env", "SECRET"), k8s.env[0]);
  assert.ok(of("Deployment", ...CONTAINER, "env", "POD_NAME") !== undefined);
  assert.deepEqual(of("HorizontalPodAutoscaler", "spec", "metrics"), []);
  assert.equal(of("HorizontalPodAutoscaler", "spec", "maxReplicas"), 9);
  assert.equal(of("Deployment", ...CONTAINER, "imagePullPolicy"), "Always");
  assert.deepEqual(pod("nodeSelector"), { a: "b" });
  assert.equal(of("Deployment", "spec", "template", "metadata", "annotations", "c"), "d");
  assert.equal(of("PodDisruptionBudget", "spec", "maxUnavailable"), 1);
  assert.equal(of("PodDisruptionBudget", "spec", "minAvailable"), undefined);
  assert.equal(pod("priorityClassName"), "high");
  assert.equal(of("Deployment", ...CONTAINER, "readinessProbe", "failureThreshold"), 3);
  assert.equal(of("Deployment", ...CONTAINER, "readinessProbe", "httpGet", "port"), 15021);
  assert.equal(of("Deployment", "spec", "replicas"), 4);
  assert.deepEqual(of("Deployment", ...CONTAINER, "resources", "requests"), { cpu: "1", memory: "128Mi" });
  assert.equal(pod("securityContext", "fsGroup"), 7);
  assert.equal(of("Service", "spec", "type"), "NodePort");
  assert.deepEqual(of("Service", "spec", "ports"), [{ protocol: "TCP", name: "http", port: 80, targetPort: 8080 }]);
  assert.deepEqual(of("Service", "metadata", "annotations"), { e: "f" });
  assert.deepEqual(of("Deployment", "spec", "strategy", "rollingUpdate"), { maxSurge: 2, maxUnavailable: "25%" });
  assert.deepEqual(pod("tolerations"), [{ key: "k" }]);
  assert.deepEqual(pod("volumes", "v"), { name: "v", emptyDir: {} });
  assert.equal(of("Deployment", ...CONTAINER, "volumeMounts", "v", "mountPath"), "/v");
});

test("ports of the control plane's Service are merged by number", async () => {
  const service = { ports: [{ port: 15012, nodePort: 31000 }] };
  const { objects } = await installedBy({ components: { pilot: { k8s: { service } } } });
  const ports = at(objects.get("Service/istio-system/istiod"), "spec", "ports");
  assert.deepEqual(at(ports, "https-dns", "nodePort"), 31000);
  assert.ok(Array.isArray(ports) && ports.length > 3);
});

test("a list of gateways is all there are: in other namespaces, with all that values say about the chart's", async () => {
  const { objects } = await installedBy({
    components: { ingressGateways: [{ name: "inner", namespace: "edge", label: { istio: "inner" } }] },
    values: { gateways: { "istio-ingressgateway": { autoscaleEnabled: false } } },
  });
  const names = [...objects.keys()].filter((name) => /gateway|inner/.test(name) && !/istio\.io/.test(name));
  assert.deepEqual(names.sort(), [
    "Deployment/edge/inner",
    "Role/edge/inner-sds",
    "RoleBinding/edge/inner-sds",
    "Service/edge/inner",
    "ServiceAccount/edge/inner-service-account",
  ]);
  const deployment = objects.get("Deployment/edge/inner");
  assert.deepEqual(at(deployment, "spec", "selector", "matchLabels"), { app: "istio-ingressgateway", istio: "inner" });
  assert.equal(at(deployment, ...CONTAINER, "env", "CA_ADDR", "value"), "istiod.istio-system.svc:15012");
});

test("what is said about one gateway is not said about another", async () => {
  const gateways = ["one", "two"].map((namespace, i) => ({ namespace, k8s: { replicaCount: i + 1 } }));
  const { objects } = await installedBy({ components: { ingressGateways: gateways } });
  const replicas = (namespace: string) =>
    at(objects.get(`Deployment/${namespace}/istio-ingressgateway`), "spec", "replicas");
  assert.deepEqual([replicas("one"), replicas("two")], [1, 2]);
});

test("overlays change any field; what leads nowhere is told", async () => {
  const overlays = [
    {
      kind: "Deployment",
      name: "istiod",
      patches: [{ path: "spec.revisionHistoryLimit", value: 1 }, { path: "a.[b].c" }],
    },
    { kind: "Deployment", name: "none", patches: [] },
    { kind: "Deployment", name: "istio-ingressgateway", patches: [{ path: "spec.paused", value: true }] },
  ];
  const { objects, told } = await installedBy({ components: { pilot: { k8s: { overlays } } } });
  assert.equal(at(objects.get("Deployment/istio-system/istiod"), "spec", "revisionHistoryLimit"), 1);
  assert.equal(at(objects.get("Deployment/istio-system/istio-ingressgateway"), "spec", "paused"), undefined);
  assert.deepEqual(told, [
    'overlay of Deployment istiod: path "a.[b].c": the list has no item [b]: it has no effect',
    "overlay of Deployment none: there is no such object: it has no effect",
    "overlay of Deployment istio-ingressgateway: there is no such object: it has no effect",
  ]);
});

test("a field of the wrong form is refused with its name", async () => {
  const env = [{ value: "a variable without a name" }];
  await assert.rejects(installedBy({ components: { pilot: { k8s: { env } } } }), {
    code: "INSTALL_INVALID",
    message: /^components: k8s\.env of istiod: /,
  });
});

test("definitions of kinds can be left out, and changed by overlays of base", async () => {
  const count = async (spec: object) => [...(await installedBy(spec)).objects.values()].filter(isDefinition).length;
  const all = await count({});
  assert.equal(await count({ components: { base: { enabled: false } } }), 0);
  assert.equal(await count({ values: { base: { excludedCRDs: ["envoyfilters.networking.istio.io"] } } }), all - 1);
  const name = "gateways.networking.istio.io";
  const overlay = { kind: "CustomResourceDefinition", name, patches: [{ path: "metadata.labels.a", value: "b" }] };
  const { objects } = await installedBy({ components: { base: { k8s: { overlays: [overlay] } } } });
  assert.equal(at(objects.get(`CustomResourceDefinition/${name}`), "metadata", "labels", "a"), "b");
});

test("the name of an IstioOperator is in the labels of its objects", async () => {
  const { objects } = await installedBy({}, "main");
  const labels = at(objects.get("Deployment/istio-system/istiod"), "metadata", "labels");
  assert.equal(isRecord(labels) && labels["install.operator.istio.io/owning-resource"], "main");
});

function isDefinition({ kind }: { readonly kind?: string | undefined }): boolean {
  return kind === "CustomResourceDefinition";
}
