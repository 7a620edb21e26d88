import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "@bufbuild/protobuf";
import { styleFor } from "#lib/print/style.ts";
import { LISTENER_TYPE, ROUTE_TYPE } from "#protocol/messages/type-urls.ts";
import { formatChanges, resourceChanges } from "./difference.ts";
import type { TranslatedResource } from "./resources.ts";

const recipe = { name: "", input: {}, build: () => new Uint8Array() };

function resource(name: string, json: JsonObject, typeUrl = ROUTE_TYPE): TranslatedResource {
  return { typeUrl, name, json: { name, ...json }, recipe };
}

test("resourceChanges() tells what is added, removed and changed, and leaves out what stays", () => {
  const before = [resource("a", {}), resource("b", { x: 1 }), resource("c", {})];
  const after = [resource("a", {}), resource("b", { x: 2 }), resource("d", {}, LISTENER_TYPE)];
  const changes = resourceChanges(before, after).map(({ change, type, name }) => `${change} ${type} ${name}`);
  assert.deepEqual(changes, ["removed rds c", "changed rds b", "added lds d"]);
});

test("resourceChanges() says in words which field changed, items by their names where they have some", () => {
  const words = (before: JsonObject, after: JsonObject) =>
    resourceChanges([resource("r", before)], [resource("r", after)])[0]?.words;
  assert.deepEqual(
    words(
      { hosts: [{ name: "a", weight: 1 }, { name: "b" }], old: true, plain: [1, 2] },
      { hosts: [{ name: "b" }, { name: "a", weight: 2 }], "new/field": [], plain: [1, 3] },
    ),
    [
      "hosts[a].weight is 2, it was 1",
      "hosts is in another order",
      "old is gone, it was true",
      "plain[1] is 3, it was 2",
      '"new/field" is new: []',
    ],
  );
  const many = (value: number) => Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`f${i}`, value]));
  assert.equal(words(many(1), many(2))?.at(-1), "and 10 more");
});

test("formatChanges() gives a patch of each resource and a summary", () => {
  const changes = resourceChanges([resource("a", { x: 1 })], [resource("a", { x: 2 }), resource("b", {})]);
  const text = formatChanges(changes, { folders: ["old", "new"], style: styleFor({}, {}) });
  assert.equal(
    text,
    `changed: rds a
  x is 2, it was 1
--- old/rds/a
+++ new/rds/a
@@ -1,2 +1,2 @@
 name: a
-x: 1
+x: 2

added: rds b
--- /dev/null
+++ new/rds/b
@@ -0,0 +1 @@
+name: b

1 added, 1 changed, 0 removed
`,
  );
});
