import assert from "node:assert/strict";
import { test } from "node:test";
import { chartValues } from "./istio-operator.ts";

const operator = (spec: object) => ({ apiVersion: "install.istio.io/v1alpha1", kind: "IstioOperator", spec });

test("chartValues() leaves plain values as they are, and takes those under `values.` for the same", () => {
  const plain = { pilot: { env: { A: "b" } }, revision: "canary" };
  assert.deepEqual(chartValues(plain, "f"), plain);
  assert.deepEqual(chartValues({ values: plain, profile: "demo" }, "f"), { ...plain, profile: "demo" });
});

test("chartValues() reads an IstioOperator: profile, images, mesh config, values", () => {
  const spec = {
    profile: "minimal",
    hub: "example.com/mesh",
    tag: "1",
    revision: "r",
    meshConfig: { accessLogFile: "/dev/stdout" },
    values: { global: { network: "n" } },
  };
  assert.deepEqual(chartValues(operator(spec), "f"), {
    profile: "minimal",
    revision: "r",
    meshConfig: { accessLogFile: "/dev/stdout" },
    global: { hub: "example.com/mesh", tag: "1", network: "n" },
  });
});

test("chartValues() reads components: on and off, and what Kubernetes is told about them", () => {
  const k8s = {
    resources: { requests: { cpu: "1" } },
    replicaCount: 2,
    env: [{ name: "A", value: "b" }],
    hpaSpec: { minReplicas: 2, maxReplicas: 4 },
    serviceAnnotations: { x: "y" },
    service: { type: "NodePort" },
  };
  const components = {
    base: { enabled: true },
    cni: { enabled: false },
    pilot: { enabled: false },
    ingressGateways: [{ enabled: false }, { name: "other", label: { istio: "other" }, enabled: true, k8s }],
    egressGateways: [null, { name: "out", enabled: true }],
  };
  assert.deepEqual(chartValues(operator({ components }), "f"), {
    pilot: { enabled: false },
    gateways: {
      "istio-ingressgateway": { component: "IngressGateways", enabled: false },
      other: {
        component: "IngressGateways",
        labels: { istio: "other" },
        enabled: true,
        resources: { requests: { cpu: "1" } },
        replicaCount: 2,
        env: { A: "b" },
        autoscaleEnabled: true,
        autoscaleMin: 2,
        autoscaleMax: 4,
        serviceAnnotations: { x: "y" },
        type: "NodePort",
      },
      out: { component: "EgressGateways", enabled: true },
    },
  });
});

for (const [spec, message] of [
  [{ components: { pilots: {} } }, "f: components.pilots: there is no such component"],
  [{ components: { cni: { enabled: true } } }, "f: components.cni: is no part of this mesh"],
  [{ components: { ingressGateways: {} } }, "f: components.ingressGateways: a list is wanted"],
  [{ components: { ingressGateways: ["a"] } }, "f: components.ingressGateways[0]: an object is wanted"],
  [{ components: { pilot: { k8s: { overlays: [] } } } }, "f: components.pilot.k8s.overlays: cannot be set here"],
  [
    { components: { pilot: { k8s: { env: [{ name: "A", valueFrom: {} }] } } } },
    "f: components.pilot.k8s.env[0]: a name and a value are wanted",
  ],
  [{ components: [] }, "f: components: an object is wanted"],
  [{ values: "x" }, "f: values: an object is wanted"],
] as const) {
  test(`chartValues() refuses ${JSON.stringify(spec)}`, () =>
    assert.throws(() => chartValues(operator(spec), "f"), { code: "INSTALL_INVALID", message }));
}

test("chartValues() refuses an object of another kind, and a spec that is none", () => {
  assert.throws(() => chartValues({ kind: "Deployment", spec: {} }, "f.yaml"), /f\.yaml: a Deployment is neither/);
  assert.throws(() => chartValues({ kind: "IstioOperator", spec: [] }, "f.yaml"), /f\.yaml: spec: an object is wanted/);
});
