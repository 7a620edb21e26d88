import assert from "node:assert/strict";
import { test } from "node:test";
import { servingNames } from "./serving-names.ts";

const INPUT = {
  namespace: "istio-system",
  domain: "cluster.local",
  revision: "",
  discoveryHost: "istiod.istio-system.svc",
  customHosts: [],
};

test("servingNames() holds the names under which proxies know the control plane, each once", () => {
  assert.deepEqual(servingNames(INPUT), [
    "127.0.0.1",
    "istio-pilot.istio-system.svc",
    "istiod-remote.istio-system.svc",
    "istiod.istio-system.svc",
    "istiod.istio-system.svc.cluster.local",
    "localhost",
  ]);
});

test("servingNames() adds another namespace, a revision, the mesh's address and the operator's hosts", () => {
  const names = servingNames({
    ...INPUT,
    namespace: "mesh",
    revision: "canary",
    discoveryHost: "10.0.0.1",
    customHosts: ["istiod.example.com"],
  });
  for (const name of [
    "istiod.mesh.svc",
    "istiod-canary.mesh.svc",
    "10.0.0.1",
    "istiod.example.com",
    "istiod.istio-system.svc",
  ]) {
    assert.ok(names.includes(name), name);
  }
});

test("servingNames() makes no name of the default revision", () => {
  assert.deepEqual(servingNames({ ...INPUT, revision: "default" }), servingNames(INPUT));
});
