import assert from "node:assert/strict";
import { test } from "node:test";
import { componentsOf, gatewayPlan } from "./components.ts";

test("componentsOf() reads which components there are, their images, and what Kubernetes is told about them", () => {
  const k8s = { replicaCount: 2 };
  const read = componentsOf(
    {
      base: { enabled: false },
      cni: { enabled: false },
      ztunnel: null,
      pilot: { enabled: true, hub: "h", tag: 5, k8s },
    },
    "f",
  );
  assert.deepEqual(read, {
    values: { base: { enabled: false }, pilot: { enabled: true, hub: "h", tag: 5 } },
    namespace: "",
    gateways: {},
    patches: [
      { component: "Base", resources: {} },
      { component: "Pilot", resources: k8s },
    ],
  });
});

test("componentsOf() reads gateways: ports of a Service are values, the rest is laid over it", () => {
  const ports = [{ name: "http", port: 80 }];
  const list = [null, { name: "in", namespace: "n", label: { a: "b" }, k8s: { service: { type: "NodePort", ports } } }];
  assert.deepEqual(componentsOf({ ingressGateways: list, egressGateways: [{ enabled: false }] }, "f").gateways, {
    "istio-ingressgateway": [
      {
        name: "in",
        namespace: "n",
        enabled: true,
        values: { labels: { a: "b" }, ports },
        resources: { service: { type: "NodePort" } },
      },
    ],
    "istio-egressgateway": [
      { name: "istio-egressgateway", namespace: "", enabled: false, values: {}, resources: { service: {} } },
    ],
  });
});

for (const [components, message] of [
  [{ pilots: {} }, "f: components.pilots: there is no such component"],
  [{ cni: { enabled: true } }, "f: components.cni: is no part of this mesh"],
  [{ ingressGateways: {} }, "f: components.ingressGateways: a list is wanted"],
  [{ ingressGateways: ["a"] }, "f: components.ingressGateways[0]: an object is wanted"],
  [{ ingressGateways: [{}, {}] }, 'f: components.ingressGateways: gateway "istio-ingressgateway" is there twice'],
  [{ ingressGateways: [{ label: "a" }] }, "f: components.ingressGateways[0].label: an object is wanted"],
  [{ base: { namespace: "other" } }, "f: components.base.namespace: cannot be set here"],
  [{ pilot: { enable: true } }, "f: components.pilot.enable: cannot be set here"],
  [{ egressGateways: [{ labels: {} }] }, "f: components.egressGateways[0].labels: cannot be set here"],
  [{ pilot: { enabled: "maybe" } }, "f: components.pilot.enabled: a boolean is wanted"],
  [{ pilot: { k8s: { hostNetwork: true } } }, "f: components.pilot.k8s.hostNetwork: cannot be set here"],
  [{ pilot: { k8s: { env: {} } } }, "f: components.pilot.k8s.env: a list is wanted"],
  [{ pilot: { k8s: { replicaCount: "2" } } }, "f: components.pilot.k8s.replicaCount: a number is wanted"],
  [{ pilot: { k8s: { priorityClassName: 2 } } }, "f: components.pilot.k8s.priorityClassName: a text is wanted"],
  [{ pilot: { k8s: { resources: [] } } }, "f: components.pilot.k8s.resources: an object is wanted"],
] as const) {
  test(`componentsOf() refuses ${JSON.stringify(components)}`, () =>
    assert.throws(() => componentsOf(components, "f"), { code: "INSTALL_INVALID", message }));
}

const MODEL = { component: "IngressGateways", labels: { app: "own", istio: "own" }, type: "LoadBalancer" };
const named = (name: string, namespace = "", values = {}) => {
  return { name, namespace, enabled: true, values, resources: { replicaCount: 2 } };
};

test("gatewayPlan() gives gateways all of the model, under names of their own, and does without one that is not listed", () => {
  const { values, patches } = gatewayPlan("own", [named("a", "n", { labels: { istio: "a" } })], MODEL);
  assert.deepEqual(values, {
    own: { enabled: false },
    a: { ...MODEL, name: "a", namespace: "n", enabled: true, labels: { app: "own", istio: "a" } },
  });
  assert.deepEqual(patches, [
    { component: "IngressGateways", name: "a", namespace: "n", resources: { replicaCount: 2 } },
  ]);
});

test("gatewayPlan() tells gateways of one name in two namespaces apart", () => {
  const { values } = gatewayPlan("own", [named("own", "one"), named("own", "two")], MODEL);
  assert.deepEqual(Object.keys(values), ["own", "own.one", "own.two"]);
});

test("gatewayPlan() installs what values switch on though the list switches it off", () => {
  const off = { ...named("own"), enabled: false };
  assert.deepEqual(gatewayPlan("own", [off], MODEL), {
    values: { own: { name: "own", namespace: "", enabled: false } },
    patches: [],
  });
  assert.equal(gatewayPlan("own", [off], { ...MODEL, enabled: true }).patches.length, 1);
});
