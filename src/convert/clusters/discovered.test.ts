import assert from "node:assert/strict";
import { test } from "node:test";
import { meshOf } from "../../../test/support/mesh.ts";

const service = (name: string, namespace: string) =>
  JSON.stringify({ apiVersion: "v1", kind: "Service", metadata: { name, namespace }, spec: { ports: [{ port: 80 }] } });
const YAML = [
  JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name: "a", labels: { mesh: "on", team: "x" } } }),
  JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name: "b", labels: { team: "y" } } }),
  service("one", "a"),
  service("two", "b"),
  service("three", "c"),
].join("\n---\n");

function discovered(...discoverySelectors: object[]): string {
  return meshOf(YAML, { mesh: { discoverySelectors } })
    .services.map(({ name }) => name)
    .join();
}

test("only objects of selected namespaces are part of the mesh", () => {
  assert.equal(discovered(), "one,three,two");
  assert.equal(discovered({ matchLabels: { mesh: "on" } }), "one");
  assert.equal(discovered({ matchLabels: { mesh: "on" } }, { matchLabels: { team: "y" } }), "one,two");
  assert.equal(discovered({ matchLabels: { mesh: "on", team: "y" } }), "");
  assert.equal(discovered({}), "one,three,two");
});

test("namespaces are selected by expressions, and by their names", () => {
  const by = (key: string, operator: string, values?: string[]) =>
    discovered({ matchExpressions: [{ key, operator, values }] });
  assert.equal(by("team", "In", ["x", "y"]), "one,two");
  assert.equal(by("team", "NotIn", ["x"]), "three,two");
  assert.equal(by("mesh", "Exists"), "one");
  assert.equal(by("team", "DoesNotExist"), "three");
  assert.equal(discovered({ matchLabels: { "kubernetes.io/metadata.name": "c" } }), "three");
});

test("namespaces that are not selected are not known either", () => {
  const mesh = meshOf(YAML, { mesh: { discoverySelectors: [{ matchLabels: { mesh: "on" } }] } });
  assert.deepEqual(
    mesh.namespaces.map(({ metadata }) => metadata.name),
    ["a"],
  );
});

test("selectors that make no sense leave nobody out", () => {
  assert.equal(discovered({ matchExpressions: [{ key: "team", operator: "Like", values: ["x"] }] }), "one,three,two");
});

test("a namespace that is selected later brings its objects", () => {
  const mesh = { discoverySelectors: [{ matchLabels: { mesh: "on" } }] };
  const before = meshOf(YAML, { mesh });
  const after = meshOf(YAML.replace('"team":"y"', '"mesh":"on"'), { mesh, previous: before });
  assert.deepEqual(
    after.services.map(({ name }) => name),
    ["one", "two"],
  );
  assert.equal(after.services[0], before.services[0]);
});
