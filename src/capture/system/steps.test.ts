import assert from "node:assert/strict";
import { test } from "node:test";
import { runSteps, type Step } from "./steps.ts";

/** Steps that write down what happens to them; some fail. */
function steps(names: readonly string[], failing = ""): { readonly list: readonly Step[]; readonly seen: string[] } {
  const seen: string[] = [];
  const list = names.map((name) => ({
    run: async () => {
      seen.push(name);
      if (name === failing) throw new Error(`${name} failed`);
    },
    undo: async () => {
      seen.push(`undo ${name}`);
    },
  }));
  return { list, seen };
}

test("runSteps() runs in order and takes nothing back when all goes well", async () => {
  const { list, seen } = steps(["a", "b"]);
  await runSteps(list);
  assert.deepEqual(seen, ["a", "b"]);
});

test("runSteps() takes back the step that failed and those before it, the last one first", async () => {
  const { list, seen } = steps(["a", "b", "c"], "b");
  await assert.rejects(runSteps(list), /b failed/);
  assert.deepEqual(seen, ["a", "b", "undo b", "undo a"]);
});
