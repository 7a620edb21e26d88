/**
 * Istio's security note "sidecar-annotation-yaml-injection": values from a pod that templates write into YAML must not add
 * fields, containers or volumes to it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { injectPod } from "./inject-pod.ts";
import { testInjector } from "./injector/fixture.ts";
import { InjectionError } from "./injector/injection-error.ts";
import type { Injector } from "./injector/injector.ts";
import { type Pod, readPod } from "./pod/pod.ts";
import { STOCK_TEMPLATES } from "./templates/templates.ts";

const SHELL = '{"name": "evil", "image": "evil", "securityContext": {"privileged": true}}';
const PAYLOADS = [
  `x\n  hostNetwork: true`,
  `x"\n  hostNetwork: true\n  a: "`,
  `x\n  - ${SHELL}`,
  `x"\n    securityContext: {privileged: true}\n    z: "`,
  `x"}]\n- ${SHELL}\n- {"a": [{"b": "`,
  `x", "securityContext": {"privileged": true}, "a": "`,
  `x'\n  hostPID: true\n  a: '`,
  `x\r  hostNetwork: true`,
  `x\u0085  hostNetwork: true`,
  `x\u2028  hostNetwork: true`,
  `&a ${SHELL}`,
  `!!binary x`,
  `{{ fail "run" }}`,
  "x: y",
  "- x",
  "x # y",
  "$(x)",
];

/** What a template reads, and what injection reads beside it. */
function annotationsRead(template: string): readonly string[] {
  const used = template.slice(template.lastIndexOf('{{- define "pull secrets"'));
  const named = [...used.matchAll(/"([a-z0-9.-]+\.(?:io|com)\/[\w.-]+)"/gi)].map(([, name = ""]) => name);
  const resources = ["proxyCPU", "proxyMemory", "proxyCPULimit", "proxyMemoryLimit"].map(
    (one) => `sidecar.istio.io/${one}`,
  );
  const others = [
    ...["userVolume", "userVolumeMount", "logLevel", "componentLogLevel", "proxyImage"].map(
      (one) => `sidecar.istio.io/${one}`,
    ),
    "proxy.istio.io/config",
    "sidecar.istio.io/rewriteAppHTTPProbers",
    "prometheus.io/port",
    "inject.istio.io/templates",
  ];
  return [...new Set([...named, ...resources, ...others])];
}

function injected(metadata: object, injector: Injector = testInjector()): Pod | undefined {
  const pod = readPod({
    metadata: { name: "web", ...metadata },
    spec: { containers: [{ name: "web", image: "web", ports: [{ containerPort: 80 }] }] },
  });
  const owner = { name: "web", kind: "Pod", apiVersion: "v1", namespace: "default" };
  try {
    return injectPod({
      pod,
      owner,
      proxyConfig: injector.mesh.defaultConfig,
      nativeSidecars: false,
      proxyEnvironment: {},
      namespaceAnnotations: undefined,
      injector,
    });
  } catch (thrown) {
    if (thrown instanceof InjectionError) return undefined;
    throw thrown;
  }
}

/** Everything that a payload could add: fields, containers, volumes; texts are left out. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value === "string") return "text";
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== "annotations" && name !== "labels")
      .map(([name, item]) => [name, shapeOf(item)]),
  );
}

test("no annotation that templates read can add anything to a pod", () => {
  for (const [template, text] of Object.entries(STOCK_TEMPLATES)) {
    const injector = { ...testInjector(), defaultTemplates: [template] };
    const names = annotationsRead(text);
    assert.ok(names.length >= (template === "sidecar" ? 25 : 8), names.join());
    for (const name of names) {
      const plain = injected({ annotations: { [name]: "x" } }, injector) ?? injected({}, injector);
      for (const payload of PAYLOADS) {
        const pod = injected({ annotations: { [name]: payload } }, injector);
        if (pod !== undefined)
          assert.deepEqual(shapeOf(pod.spec), shapeOf(plain?.spec), `${template}: ${name}: ${payload}`);
      }
    }
  }
});

test("no label, name or port of a pod can add anything to it", () => {
  const plain = injected({ labels: { app: "x" } });
  for (const payload of PAYLOADS) {
    for (const metadata of [
      { labels: { app: payload } },
      { labels: { "service.istio.io/canonical-name": payload, version: payload } },
      { labels: { "service.istio.io/workload-name": payload } },
      { labels: { app: "x" }, name: payload },
    ]) {
      const pod = injected(metadata);
      if (pod !== undefined) assert.deepEqual(shapeOf(pod.spec), shapeOf(plain?.spec), JSON.stringify(metadata));
    }
  }
});

test("templates that write annotations into YAML unquoted, as Istio's do, are protected too", () => {
  const template = `
spec:
  containers:
  - name: istio-proxy
    image: "{{ annotation .ObjectMeta "sidecar.istio.io/proxyImage" "auto" }}"
    args:
    - --proxyLogLevel={{ annotation .ObjectMeta "sidecar.istio.io/logLevel" "warning" }}
    - --concurrency={{ annotation .ObjectMeta "traffic.sidecar.istio.io/excludeInterfaces" "" }}
    resources: {requests: {cpu: "{{ annotation .ObjectMeta "sidecar.istio.io/proxyCPU" "1" }}"}}
`;
  const injector = testInjector({ config: { templates: { sidecar: template } } });
  const plain = shapeOf(injected({}, injector)?.spec);
  for (const name of ["proxyImage", "logLevel", "proxyCPU"].map((one) => `sidecar.istio.io/${one}`)) {
    for (const payload of PAYLOADS.filter((one) => /["\n\r\u0085]/.test(one))) {
      const pod = injected({ annotations: { [name]: payload } }, injector);
      if (pod !== undefined) assert.deepEqual(shapeOf(pod.spec), plain, `${name}: ${payload}`);
    }
  }
});

test("__proto__ in a pod is a plain key or nothing", () => {
  const annotations: unknown = JSON.parse(
    '{"__proto__": "x", "sidecar.istio.io/userVolume": "{\\"__proto__\\": {\\"emptyDir\\": {}}}"}',
  );
  const pod = injected({ annotations, labels: JSON.parse('{"__proto__": "x", "app": "y"}') });
  assert.equal(Object.hasOwn({}, "emptyDir"), false);
  assert.equal(({} as Record<string, unknown>).x, undefined);
  assert.ok(pod === undefined || Object.getPrototypeOf(pod.metadata.annotations) === Object.prototype);
});
