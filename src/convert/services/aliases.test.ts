import assert from "node:assert/strict";
import { test } from "node:test";
import { meshOf } from "../../../test/support/mesh.ts";

function service(name: string, spec: object): string {
  return `${JSON.stringify({ apiVersion: "v1", kind: "Service", metadata: { name }, spec })}\n---\n`;
}

function alias(name: string, target: string): string {
  return service(name, { type: "ExternalName", externalName: target });
}

const host = (name: string) => `${name}.default.svc.cluster.local`;
const CONCRETE = service("web", { clusterIP: "10.96.0.1", ports: [{ name: "http", port: 80 }] });

function aliasesOf(yaml: string): readonly string[] {
  const found = meshOf(yaml).services.find(({ name }) => name === "web");
  return (found?.aliases ?? []).map(({ hostname }) => hostname);
}

test("a service knows its aliases, also those of its aliases", () => {
  const yaml = CONCRETE + alias("z", host("web")) + alias("a", host("z")) + alias("else", "example.com");
  assert.deepEqual(aliasesOf(yaml), [host("a"), host("z")]);
});

test("aliases that lead in a circle lead nowhere", () => {
  assert.deepEqual(aliasesOf(CONCRETE + alias("a", host("b")) + alias("b", host("a"))), []);
  assert.deepEqual(aliasesOf(CONCRETE + alias("a", host("a"))), []);
  assert.deepEqual(aliasesOf(CONCRETE + alias("a", host("b")) + alias("b", host("c")) + alias("c", host("b"))), []);
});

test("a service without aliases stays the same object", () => {
  const before = meshOf(CONCRETE + alias("a", host("web")));
  const after = meshOf(CONCRETE + alias("a", host("web")) + alias("b", "example.com"), { previous: before });
  assert.equal(
    after.services.find(({ name }) => name === "web"),
    before.services.find(({ name }) => name === "web"),
  );
});
