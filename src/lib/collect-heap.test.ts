import assert from "node:assert/strict";
import { test } from "node:test";
import { collectHeap } from "./collect-heap.ts";

/** Something that nobody holds from the next turn of the event loop on. */
async function garbage(): Promise<WeakRef<object>> {
  const reference = new WeakRef({});
  await new Promise((resolve) => setImmediate(resolve));
  return reference;
}

test("collectHeap() collects what nobody holds", async () => {
  const reference = await garbage();
  assert.equal(collectHeap(Number.MAX_SAFE_INTEGER), true);
  assert.equal(reference.deref(), undefined);
});

test("collectHeap() leaves a large heap to V8", async () => {
  const reference = await garbage();
  assert.equal(collectHeap(1), false);
  assert.notEqual(reference.deref(), undefined);
});

test("collectHeap() shows nothing of itself to the program", () => {
  collectHeap(Number.MAX_SAFE_INTEGER);
  assert.equal("gc" in globalThis, false);
});
