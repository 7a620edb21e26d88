import assert from "node:assert/strict";
import test from "node:test";
import { RefusedNames } from "./refused-names.ts";

test("RefusedNames tells each name once, and all of a workload in one note", () => {
  const refused = new RefusedNames();
  assert.deepEqual(refused.notes(), []);
  assert.equal(refused.add("web", "a.example"), true);
  assert.equal(refused.add("web", "a.example"), false);
  for (const name of ["b.example", "c.example", "d.example"]) refused.add("web", name);
  refused.add("db", "a.example");
  const how = "but this mesh has no way out: take it down and start it with `mizzen up --egress`";
  assert.deepEqual(refused.notes(), [
    `web asked for a.example, b.example, c.example and 1 more, ${how}`,
    `db asked for a.example, ${how}`,
  ]);
});

test("RefusedNames does not listen to a workload that asks for ever more", () => {
  const refused = new RefusedNames();
  const added = Array.from({ length: 1000 }, (_, i) => refused.add("web", `${i}.example`));
  assert.equal(added.filter(Boolean).length, 20);
});
