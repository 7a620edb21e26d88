import assert from "node:assert/strict";
import { test } from "node:test";
import { readObjects } from "./document.ts";

const problemsOf = (text: string) =>
  readObjects(text).flatMap(({ problems }) =>
    problems.map(({ line, field, message }) => `${line} ${field} ${message}`),
  );

test("readObjects() refuses a List whose items are no list, and takes one without items for empty", () => {
  assert.deepEqual(problemsOf("apiVersion: v1\nkind: List\nitems: x\n"), ["3 items must be a list of objects"]);
  assert.deepEqual(readObjects("apiVersion: v1\nkind: List\nitems:\n"), []);
  assert.deepEqual(readObjects("apiVersion: v1\nkind: List\nitems: []\n"), []);
});
