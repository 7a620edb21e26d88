import assert from "node:assert/strict";
import { test } from "node:test";
import { meshOf } from "../../../test/support/mesh.ts";
import { object } from "../../../test/support/objects.ts";
import { effectiveMode, modeOfPort, namespaceMode, policiesOf } from "./peer-authentication.ts";

const policy = (where: string, mode: string | undefined, spec: object = {}, createdAt = "2024-01-01T00:00:00Z") =>
  object("PeerAuthentication", where, { ...(mode && { mtls: { mode } }), ...spec }, { creationTimestamp: createdAt });
const selector = (app: string) => ({ selector: { matchLabels: { app } } });

function modeFor(yaml: string, namespace = "default", labels: Record<string, string> = { app: "web" }) {
  const mesh = meshOf(yaml);
  return effectiveMode(policiesOf(mesh, namespace), { namespace, labels }, mesh.mesh.rootNamespace);
}

test("without any policy both plain text and mutual TLS are taken", () => {
  assert.deepEqual(modeFor(""), { mode: "PERMISSIVE", ports: {} });
});

test("the narrowest policy wins: workload, namespace, mesh", () => {
  const mesh = policy("istio-system/default", "STRICT");
  const namespace = policy("default/default", "DISABLE");
  const workload = policy("default/web", "PERMISSIVE", selector("web"));
  assert.equal(modeFor(mesh).mode, "STRICT");
  assert.equal(modeFor(mesh + namespace).mode, "DISABLE");
  assert.equal(modeFor(mesh + namespace + workload).mode, "PERMISSIVE");
  assert.equal(modeFor(mesh + namespace + workload, "default", { app: "other" }).mode, "DISABLE");
  assert.equal(modeFor(mesh + namespace, "elsewhere").mode, "STRICT");
});

test("what is unset is inherited", () => {
  const mesh = policy("istio-system/default", "STRICT");
  for (const mode of [undefined, "UNSET"]) {
    assert.equal(modeFor(mesh + policy("default/default", mode)).mode, "STRICT");
    assert.equal(modeFor(mesh + policy("default/web", mode, selector("web"))).mode, "STRICT");
  }
});

test("of two policies of one reach the oldest wins", () => {
  const young = policy("default/a", "STRICT", {}, "2024-01-01T00:00:00Z");
  const old = policy("default/b", "DISABLE", {}, "2020-01-01T00:00:00Z");
  assert.equal(modeFor(young + old).mode, "DISABLE");
});

test("ports of a workload may differ; those unset have the workload's mode", () => {
  const portLevelMtls = { 80: { mode: "DISABLE" }, 90: { mode: "UNSET" } };
  const mtls = modeFor(policy("default/web", "STRICT", { ...selector("web"), portLevelMtls }));
  assert.deepEqual(
    [80, 90, 100].map((port) => modeOfPort(mtls, port)),
    ["DISABLE", "STRICT", "STRICT"],
  );
});

test("a selector in the root namespace selects nothing elsewhere, and does not speak for the mesh", () => {
  const yaml = policy("istio-system/web", "STRICT", selector("web"));
  assert.equal(modeFor(yaml).mode, "PERMISSIVE");
  assert.equal(modeFor(yaml, "istio-system").mode, "PERMISSIVE");
});

test("a client knows policies of the namespace and mesh, not those of single workloads", () => {
  const mesh = meshOf(policy("default/web", "DISABLE", selector("web")) + policy("istio-system/default", "STRICT"));
  assert.equal(namespaceMode(mesh, "default"), "STRICT");
  assert.equal(namespaceMode(meshOf(policy("default/default", "DISABLE")), "default"), "DISABLE");
});
