import assert from "node:assert/strict";
import { test } from "node:test";
import { overlaid, withSet } from "./values.ts";

test("overlaid() merges objects, replaces the rest, and takes away what is null", () => {
  const base = { a: { b: 1, c: [1, 2] }, d: 4, e: 5 };
  assert.deepEqual(overlaid(base, { a: { c: [3] }, d: null, f: {} }), { a: { b: 1, c: [3] }, e: 5, f: {} });
  assert.deepEqual(base.a.c, [1, 2]);
});

for (const [text, wanted] of [
  ["a=b", { a: "b" }],
  ["a.b.c=1", { a: { b: { c: 1 } } }],
  ["a=true", { a: true }],
  ["a=007", { a: "007" }],
  ["a=", { a: "" }],
  ["a=null", { a: null }],
  ["a={x,2}", { a: ["x", 2] }],
  ["a[1].b=c", { a: [null, { b: "c" }] }],
  ["nodeSelector.kubernetes\\.io/os=linux", { nodeSelector: { "kubernetes.io/os": "linux" } }],
  ["a=b=c", { a: "b=c" }],
] as const) {
  test(`withSet() reads ${text}`, () => assert.deepEqual(withSet({}, text), wanted));
}

for (const text of ["a", "=b", "a..b=1", "a[x]=1", "__proto__.x=1", "a[99999999]=1"]) {
  test(`withSet() refuses ${text}`, () => assert.throws(() => withSet({}, text), { code: "INSTALL_INVALID" }));
}

test("withSet() keeps what else an object or a list has", () => {
  const settings = ["a[0].b=1", "a[0].c=2", "a[2]=x", "d.e=3", "d.f=4"].reduce(withSet, {});
  assert.deepEqual(settings, { a: [{ b: 1, c: 2 }, null, "x"], d: { e: 3, f: 4 } });
});
