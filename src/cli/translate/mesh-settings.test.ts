import assert from "node:assert/strict";
import { test } from "node:test";
import { findMeshSettings } from "./mesh-settings.ts";

const configMap = (name: string, namespace = "istio-system") => `apiVersion: v1
kind: ConfigMap
metadata: {name: ${name}, namespace: ${namespace}}
data:
  mesh: |-
    accessLogFile: /dev/stdout
`;

test("findMeshSettings() reads istiod's ConfigMap of the revision", () => {
  const files = {
    "a.yaml": configMap("other"),
    "b.yaml": `---\n${configMap("istio")}`,
    "c.yaml": configMap("istio", "x"),
  };
  assert.deepEqual(findMeshSettings(files, "default"), [
    { file: "b.yaml", line: 2, raw: { accessLogFile: "/dev/stdout" }, isWholeFile: false },
  ]);
  assert.deepEqual(findMeshSettings(files, "canary"), []);
  assert.equal(findMeshSettings({ "a.yaml": configMap("istio-canary") }, "canary").length, 1);
});

test("findMeshSettings() reads an IstioOperator, a mesh.yaml, and a file that is the mesh config", () => {
  const operator = "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec: {meshConfig: {trustDomain: a}}";
  const mesh = "apiVersion: mizzen.dev/v1alpha1\nkind: Mesh\nspec: {meshConfig: {trustDomain: b}}";
  const found = findMeshSettings(
    {
      "o.yaml": operator,
      "x/mesh.yaml": mesh,
      "x/meshConfig.yaml": "trustDomain: c",
      "x/other.yaml": "trustDomain: d",
    },
    "default",
  );
  assert.deepEqual(
    found.map(({ raw, isWholeFile }) => [raw, isWholeFile]),
    [
      [{ trustDomain: "a" }, false],
      [{ trustDomain: "b" }, false],
      [{ trustDomain: "c" }, true],
    ],
  );
});

test("findMeshSettings() finds nothing in broken or empty files", () => {
  assert.deepEqual(findMeshSettings({ "mesh.yaml": "{", "meshconfig.yaml": "", "mesh.json": "[1]" }, ""), []);
});

test("findMeshSettings() finds the networks beside the mesh config", () => {
  const networks = `${configMap("istio")}  meshNetworks: |-\n    networks: {n1: {gateways: []}}\n`;
  const operator =
    "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec: {values: {global: {meshNetworks: {n2: {}}}}}";
  assert.deepEqual(
    findMeshSettings({ "mesh.yaml": networks, "meshConfig.yaml": operator }, "default").map((one) => one.networks),
    [{ networks: { n1: { gateways: [] } } }, { networks: { n2: {} } }],
  );
});
