import assert from "node:assert/strict";
import { test } from "node:test";
import { FieldError } from "./canonical.ts";
import { strategicMerge } from "./strategic-merge.ts";

const spec = (original: object, patch: object) =>
  strategicMerge("Pod", { spec: original }, { spec: patch }).spec as Readonly<Record<string, unknown>>;

test("strategicMerge() merges objects, replaces scalars and removes what is null", () => {
  const merged = strategicMerge(
    "Pod",
    { metadata: { name: "a", labels: { x: "1", y: "2" } } },
    { metadata: { name: "b", labels: { x: null, z: "3" } } },
  );
  assert.deepEqual(merged, { metadata: { name: "b", labels: { y: "2", z: "3" } } });
});

test("strategicMerge() merges containers by name and their lists by their keys", () => {
  const merged = spec(
    { containers: [{ name: "app", env: [{ name: "A", value: "1" }], args: ["x"], ports: [{ containerPort: 80 }] }] },
    {
      containers: [
        { name: "app", env: [{ name: "A", value: "2" }, { name: "B" }], args: ["y"], ports: [{ containerPort: 81 }] },
      ],
    },
  );
  assert.deepEqual(merged.containers, [
    {
      name: "app",
      env: [{ name: "A", value: "2" }, { name: "B" }],
      args: ["y"],
      ports: [{ containerPort: 81 }, { containerPort: 80 }],
    },
  ]);
});

test("strategicMerge() puts items of the patch first, except behind those that stood before them", () => {
  const names = (original: string[], patch: string[]) => {
    const list = (items: string[]) => ({ volumes: items.map((name) => ({ name })) });
    const { volumes } = spec(list(original), list(patch));
    return (volumes as { name: string }[]).map(({ name }) => name).join("");
  };
  assert.equal(names(["a", "b"], ["x", "y"]), "xyab");
  assert.equal(names(["a", "b", "c"], ["b", "x"]), "abxc");
  assert.equal(names(["a", "b"], ["x", "b"]), "xab");
});

test("strategicMerge() replaces lists without a merge key and joins lists of scalars that have one", () => {
  assert.deepEqual(spec({ tolerations: [{ key: "a" }] }, { tolerations: [{ key: "b" }] }).tolerations, [{ key: "b" }]);
  const merged = strategicMerge(
    "Pod",
    { metadata: { finalizers: ["a", "b"] } },
    { metadata: { finalizers: ["b", "c"] } },
  );
  assert.deepEqual(merged, { metadata: { finalizers: ["a", "b", "c"] } });
});

test("strategicMerge() follows directives", () => {
  const containers = [{ name: "a" }, { name: "b" }];
  assert.deepEqual(spec({ containers }, { containers: [{ name: "a", $patch: "delete" }] }).containers, [{ name: "b" }]);
  assert.deepEqual(spec({ containers }, { containers: [{ $patch: "replace" }, { name: "c" }] }).containers, [
    { name: "c" },
  ]);
  assert.deepEqual(
    spec({ securityContext: { runAsUser: 1 } }, { securityContext: { $patch: "replace", fsGroup: 2 } }),
    {
      securityContext: { fsGroup: 2 },
    },
  );
  assert.deepEqual(spec({ securityContext: { runAsUser: 1 } }, { securityContext: { $patch: "delete" } }), {
    securityContext: {},
  });
  const volume = { volumes: [{ name: "v", emptyDir: {} }] };
  const patch = { volumes: [{ name: "v", hostPath: { path: "/" }, $retainKeys: ["name", "hostPath"] }] };
  assert.deepEqual(spec(volume, patch), { volumes: [{ name: "v", hostPath: { path: "/" } }] });
  assert.deepEqual(
    strategicMerge(
      "Pod",
      { metadata: { finalizers: ["a", "b"] } },
      { metadata: { "$deleteFromPrimitiveList/finalizers": ["a"] } },
    ),
    { metadata: { finalizers: ["b"] } },
  );
  assert.deepEqual(spec({ containers }, { "$setElementOrder/containers": [{ name: "b" }, { name: "a" }] }).containers, [
    { name: "b" },
    { name: "a" },
  ]);
});

test("strategicMerge() keeps no directive in what is new", () => {
  assert.deepEqual(
    spec(
      {},
      {
        containers: [
          { name: "x", $patch: "delete" },
          { name: "y", image: null },
        ],
      },
    ),
    {
      containers: [{ name: "y" }],
    },
  );
});

test("strategicMerge() refuses patches that cannot be applied", () => {
  const refused = (patch: object) => assert.throws(() => spec({ containers: [{ name: "a" }] }, patch), FieldError);
  refused({ containers: [{ image: "x" }] });
  refused({ $patch: "merge" });
  refused({ $retainKeys: "containers" });
  refused({ $retainKeys: ["volumes"], containers: [] });
});
