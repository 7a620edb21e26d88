import assert from "node:assert/strict";
import { test } from "node:test";
import { joined, overlaid, parseSetting, type Values, withSetting } from "./values.ts";

const set = (settings: Values, text: string) => withSetting(settings, parseSetting(text));

test("overlaid() merges objects, replaces the rest, and takes away what is null", () => {
  const base = { a: { b: 1, c: [1, 2] }, d: 4, e: 5 };
  assert.deepEqual(overlaid(base, { a: { c: [3] }, d: null, f: {} }), { a: { b: 1, c: [3] }, e: 5, f: {} });
  assert.deepEqual(base.a.c, [1, 2]);
});

test("joined() merges like overlaid(), and keeps what is null for what is below", () => {
  assert.deepEqual(joined({ a: { b: 1, c: 2 } }, { a: { b: null }, d: null }), { a: { b: null, c: 2 }, d: null });
});

for (const [text, wanted] of [
  ["a=b", { a: "b" }],
  ["a.b.c=1", { a: { b: { c: 1 } } }],
  ["a=true", { a: true }],
  ["a=False", { a: false }],
  ["a=007", { a: "007" }],
  ["a=1.20", { a: "1.20" }],
  ["a=", { a: "" }],
  ["a=null", { a: null }],
  ["a={x,2}", { a: ["x", 2] }],
  ["a[1].b=c", { a: [{ b: "c" }] }],
  ["a.[0].b=c", { a: [{ b: "c" }] }],
  ["nodeSelector.kubernetes\\.io/os=linux", { nodeSelector: { "kubernetes.io/os": "linux" } }],
  ["a=b=c", { a: "b=c" }],
  ["global.tag=7", { global: { tag: "7" } }],
  ["c.proxyMetadata.ISTIO_META_DNS_CAPTURE=true", { c: { proxyMetadata: { ISTIO_META_DNS_CAPTURE: "true" } } }],
] as const) {
  test(`--set ${text} is read`, () => assert.deepEqual(set({}, text), wanted));
}

for (const text of [
  "a",
  "=b",
  "a..b=1",
  "a[x]=1",
  "a[x:]=1",
  "[0]=1",
  "a[0]b=1",
  "__proto__.x=1",
  "a[99999999999]=1",
]) {
  test(`--set ${text} is refused`, () => assert.throws(() => set({}, text), { code: "INSTALL_INVALID" }));
}

test("--set keeps what else an object or a list has, and adds what is behind the end", () => {
  const settings = ["a[0].b=1", "a[0].c=2", "a[7]=x", "a[-1]=y", "d.e=3", "d.f=4"].reduce(set, {});
  assert.deepEqual(settings, { a: [{ b: 1, c: 2 }, "x", "y"], d: { e: 3, f: 4 } });
});

test("--set finds an item of a list by one of its fields, and says where there is none", () => {
  const list = { a: [{ name: "x" }, { name: "y.z", b: 1 }] };
  assert.deepEqual(set(list, "a[name:y\\.z].b=2"), { a: [{ name: "x" }, { name: "y.z", b: 2 }] });
  const message = '--set a.[name:q].b=2: there is no item with name "q" in the list';
  assert.throws(() => set(list, "a.[name:q].b=2"), { code: "INSTALL_INVALID", message });
});
