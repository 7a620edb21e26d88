import assert from "node:assert/strict";
import { test } from "node:test";
import { isSameKeySet } from "./same-keys.ts";

const A = { kid: "a", n: "1" };
const B = { kid: "b", n: "2" };
const text = (...keys: readonly object[]) => JSON.stringify({ keys });

test("isSameKeySet() does not look at the order of keys and of their fields", () => {
  assert.equal(isSameKeySet(text(A, B), text(B, A)), true);
  assert.equal(isSameKeySet(text(A), ` {"keys": [{"n": "1", "kid": "a"}]}`), true);
  assert.equal(isSameKeySet(text({ n: "2" }, { n: "1" }), text({ n: "1" }, { n: "2" })), true);
});

test("isSameKeySet() sees every other difference", () => {
  assert.equal(isSameKeySet(text(A, B), text(A)), false);
  assert.equal(isSameKeySet(text(A), text({ ...A, n: "3" })), false);
  assert.equal(isSameKeySet(text(A, A), text(A)), false);
  assert.equal(isSameKeySet(`{"pub": [1]}`, `{"pub": [2]}`), false);
});

test("isSameKeySet() takes what cannot be read for different from everything but itself", () => {
  assert.equal(isSameKeySet("no JSON", "no JSON"), true);
  assert.equal(isSameKeySet("no JSON", text(A)), false);
  assert.equal(isSameKeySet(text(A), "no JSON"), false);
  for (const odd of ["null", "3", `{"keys": {"__proto__": 1}}`, `{"keys": [null, 3]}`]) {
    assert.equal(isSameKeySet(odd, text(A)), false);
  }
});
