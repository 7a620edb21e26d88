import assert from "node:assert/strict";
import { test } from "node:test";
import { formatSpiffeId, parseSpiffeId } from "./spiffe-id.ts";

test("formatSpiffeId() and parseSpiffeId() are a round trip", () => {
  const id = { trustDomain: "cluster.local", namespace: "default", serviceAccount: "httpbin" };
  assert.equal(formatSpiffeId(id), "spiffe://cluster.local/ns/default/sa/httpbin");
  assert.deepEqual(parseSpiffeId(formatSpiffeId(id)), id);
});

test("formatSpiffeId() writes a trust domain with @ so that it can stand in a URI", () => {
  const id = { trustDomain: "mesh@example.com", namespace: "a", serviceAccount: "b" };
  assert.equal(formatSpiffeId(id), "spiffe://mesh.example.com/ns/a/sa/b");
});

for (const text of [
  "",
  "cluster.local/ns/a/sa/b",
  "spiffe://cluster.local",
  "spiffe://cluster.local/ns/a/sa/b/more",
  "spiffe://cluster.local/sa/b/ns/a",
  "spiffe:///ns/a/sa/b",
  "https://cluster.local/ns/a/sa/b",
  "x spiffe://cluster.local/ns/a/sa/b",
]) {
  test(`parseSpiffeId() refuses "${text}"`, () => assert.equal(parseSpiffeId(text), undefined));
}
