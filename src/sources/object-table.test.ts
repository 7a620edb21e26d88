import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readConfigFile } from "./config-file.ts";
import { ObjectTable } from "./object-table.ts";

const NAMES = ["a/b.yaml", "a.yaml", "a-b.yaml", "a/c/d.yaml", "b.yaml", "a0.yaml"];
const TEXTS = [
  "{apiVersion: v1, kind: Namespace, metadata: {name: one}}",
  "{apiVersion: v1, kind: Namespace, metadata: {name: two}}",
  "{apiVersion: v1, kind: Namespace, metadata: {name: two}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: three}}",
  "{apiVersion: v1, kind: Namespace, metadata: {name: 5}}",
  "{kind: ",
  "",
];
const steps = fc.array(
  fc.record({
    file: fc.constantFrom(...NAMES),
    text: fc.option(fc.constantFrom(...TEXTS), { nil: undefined }),
    isRead: fc.boolean(),
  }),
  { minLength: 1, maxLength: 12 },
);

test("what files hold together does not depend on how they came", () => {
  fc.assert(
    fc.property(steps, (changes) => {
      const table = new ObjectTable("");
      for (const { file, text, isRead } of changes) {
        if (text === undefined) table.delete(file);
        else table.set(readConfigFile({ file, text, previous: table.get(file) }));
        if (isRead) table.collection();
      }
      const anew = new ObjectTable("");
      for (const name of table.names()) {
        const file = table.get(name);
        if (file !== undefined) anew.set(file);
      }
      assert.deepEqual(table.collection(), anew.collection());
    }),
  );
});
