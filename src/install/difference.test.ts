import assert from "node:assert/strict";
import { test } from "node:test";
import { formatObjectChanges, objectChanges } from "./difference.ts";

const object = (name: string, data: object) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data });

test("objectChanges() tells what is added, removed and changed, whatever the order of fields", () => {
  const before = [object("a", { x: 1, y: 2 }), object("b", { x: 1 }), object("c", {})];
  const after = [object("d", {}), object("b", { x: 2 }), object("a", { y: 2, x: 1 })];
  const changes = objectChanges(before, after);
  assert.deepEqual(
    changes.map(({ change, name }) => `${change} ${name}`),
    ["changed ConfigMap/b", "removed ConfigMap/c", "added ConfigMap/d"],
  );
  const text = formatObjectChanges(changes);
  assert.match(text, /^- {2}x: 1\n\+ {2}x: 2$/m);
  assert.match(text, /\n1 added, 1 changed, 1 removed\n$/);
});
