import assert from "node:assert/strict";
import { test } from "node:test";
import { meshOf } from "../../test/support/mesh.ts";
import { inCluster } from "./in-cluster.ts";
import type { Snapshot } from "./snapshot.ts";

const service = (name: string) =>
  `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}}\nspec: {clusterIP: 10.0.0.1, ports: [{name: http, port: 80}]}\n---\n`;
const MESH: Snapshot = meshOf(service("a") + service("b"));
const [A, B] = MESH.services;

function withAddresses(clusterAddresses: Readonly<Record<string, readonly string[]>>): Snapshot {
  assert.ok(A && B);
  const there = Object.entries(clusterAddresses).map(([id, addresses]) => [id, { ...A, addresses }]);
  return { ...MESH, services: [{ ...A, furtherServices: Object.fromEntries(there) }, B] };
}

test("inCluster() gives services the addresses they have there, once for all proxies of it", () => {
  const mesh = withAddresses({ c2: ["10.2.0.1"] });
  const seen = inCluster(mesh, "c2");
  assert.deepEqual(seen.services[0]?.addresses, ["10.2.0.1"]);
  assert.equal(seen.services[1], mesh.services[1]);
  assert.equal(inCluster(mesh, "c2"), seen);
  const later = inCluster({ ...mesh, version: 2 }, "c2");
  assert.equal(later.services, seen.services);
});

test("inCluster() knows no address of a service that is headless there", () => {
  assert.deepEqual(inCluster(withAddresses({ c2: [] }), "c2").services[0]?.addresses, []);
});

test("inCluster() is the snapshot itself where nothing differs", () => {
  assert.equal(inCluster(MESH, "c2"), MESH);
  for (const own of [{ c3: ["10.2.0.1"] }, { c2: ["10.0.0.1"] }]) {
    const mesh = withAddresses(own);
    assert.equal(inCluster(mesh, "c2"), mesh);
    assert.equal(inCluster(mesh, "__proto__"), mesh);
  }
});
