import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalObject, FieldError } from "./canonical.ts";

test("canonicalObject() drops what is unknown or empty and writes what the API always writes", () => {
  const deployment = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    unknown: 1,
    metadata: { creationTimestamp: null, name: "a", labels: {} },
    spec: {
      replicas: 0,
      template: {
        spec: { hostNetwork: false, containers: [{ name: "c", args: [], resources: { limits: { cpu: 1 } } }] },
      },
    },
  };
  assert.deepEqual(canonicalObject("Deployment", deployment), {
    kind: "Deployment",
    apiVersion: "apps/v1",
    metadata: { name: "a" },
    spec: {
      replicas: 0,
      selector: null,
      template: { metadata: {}, spec: { containers: [{ name: "c", resources: { limits: { cpu: "1" } } }] } },
      strategy: {},
    },
    status: {},
  });
});

test("canonicalObject() keeps what is set to nothing where that means something", () => {
  const pod = {
    spec: {
      containers: [{ name: "c", securityContext: { privileged: false, runAsUser: 0 } }],
      volumes: [{ name: "v", emptyDir: {} }],
    },
  };
  assert.deepEqual(canonicalObject("Pod", pod).spec, {
    volumes: [{ name: "v", emptyDir: {} }],
    containers: [{ name: "c", resources: {}, securityContext: { privileged: false, runAsUser: 0 } }],
  });
});

test("canonicalObject() takes numbers for text only where it is told to", () => {
  const pod = {
    spec: {
      containers: [
        {
          name: "c",
          env: [
            { name: "A", value: 1 },
            { name: "B", value: true },
          ],
        },
      ],
    },
  };
  assert.throws(() => canonicalObject("Pod", pod), /spec\.containers\[0\]\.env\[0\]\.value must be text, not 1/);
  const { spec } = canonicalObject("Pod", pod, { lenientText: true });
  assert.match(JSON.stringify(spec), /"A","value":"1".*"B","value":"true"/);
});

test("canonicalObject() names the field that is wrong", () => {
  const wrong: readonly (readonly [spec: unknown, message: RegExp])[] = [
    [[], /^spec must be an object, not a list/],
    [{ containers: {} }, /^spec\.containers must be a list, not an object/],
    [
      { containers: [{ name: "a", ports: [{ containerPort: "80" }] }] },
      /ports\[0\]\.containerPort must be a whole number/,
    ],
    [{ hostNetwork: "yes" }, /^spec\.hostNetwork must be true or false, not "yes"/],
    [{ nodeSelector: { a: [] } }, /^spec\.nodeSelector\["a"\] must be text, not a list/],
    [{ overhead: { cpu: "many" } }, /must be a quantity such as/],
    [{ containers: [{ name: "a", livenessProbe: { httpGet: { port: 1.5 } } }] }, /must be a whole number or text/],
    [{ nodeSelector: "x" }, /must be a map/],
  ];
  for (const [spec, message] of wrong) {
    assert.throws(
      () => canonicalObject("Pod", { spec }),
      (thrown) => thrown instanceof FieldError && message.test(thrown.message),
    );
  }
});
