import assert from "node:assert/strict";
import { test } from "node:test";
import { type MeshOptions, meshOf } from "../../../test/support/mesh.ts";
import { object } from "../../../test/support/objects.ts";
import { sidecarFor, unknownTarget } from "./sidecars.ts";

const egress = [{ hosts: ["./*"] }];
const sidecar = (where: string, spec: object = {}, createdAt = "2024-01-01T00:00:00Z") =>
  object("Sidecar", where, { egress, ...spec }, { creationTimestamp: createdAt });
const selecting = { workloadSelector: { labels: { app: "web" } } };

function nameFor(yaml: string, namespace = "prod", labels = { app: "web" }) {
  return sidecarFor(meshOf(yaml), { namespace, labels })?.metadata.name;
}

test("a Sidecar that selects the workload comes first, then that of the namespace, then that of the root namespace", () => {
  const root = sidecar("istio-system/root");
  const own = sidecar("prod/own", {}, "2020-01-01T00:00:00Z");
  const mine = sidecar("prod/mine", selecting);
  assert.equal(nameFor(root + own + mine), "mine");
  assert.equal(nameFor(root + own + mine, "prod", { app: "api" }), "own");
  assert.equal(nameFor(root + own, "elsewhere"), "root");
  assert.equal(nameFor(own, "elsewhere"), undefined);
  assert.equal(nameFor(""), undefined);
});

test("of several the oldest counts", () => {
  assert.equal(nameFor(sidecar("prod/a") + sidecar("prod/b", {}, "2020-01-01T00:00:00Z")), "b");
});

test("one of the root namespace with a selector is for that namespace alone", () => {
  const root = sidecar("istio-system/root", selecting);
  assert.equal(nameFor(root), undefined);
  assert.equal(nameFor(root, "istio-system"), "root");
});

test("unknown destinations follow the Sidecar, else the mesh", () => {
  const target = (policy?: object, options: MeshOptions = {}) => {
    const spec = policy === undefined ? {} : { outboundTrafficPolicy: policy };
    const mesh = meshOf(sidecar("prod/own", spec), options);
    return unknownTarget(mesh, mesh.sidecars[0]);
  };
  assert.equal(target(), "PassthroughCluster");
  assert.equal(target(undefined, { mesh: { outboundTrafficPolicy: { mode: "REGISTRY_ONLY" } } }), "BlackHoleCluster");
  assert.equal(target({}), "BlackHoleCluster", "a policy without a mode");
  assert.equal(target({ mode: "ALLOW_ANY" }), "PassthroughCluster");
  const egressProxy = { host: "out.prod.svc.cluster.local", port: { number: 443 }, subset: "v1" };
  assert.equal(target({ mode: "ALLOW_ANY", egressProxy }), "outbound|443|v1|out.prod.svc.cluster.local");
});
