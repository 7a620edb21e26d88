import assert from "node:assert/strict";
import { test } from "node:test";
import { culprits } from "./culprits.ts";

const named = (message: string, ...names: string[]) =>
  culprits(
    message,
    names.map((name) => ({ name, version: "1" })),
  ).map(({ name }) => name);

test("culprits() finds the listeners and clusters that Envoy lists", () => {
  const text = "Error adding/updating cluster(s) outbound|80||a.b.svc: no such lb, outbound|81|v1|a.b.svc: bad";
  const names = ["outbound|80||a.b.svc", "outbound|80||b.svc", "outbound|81|v1|a.b.svc", "outbound|81||a.b.svc"];
  assert.deepEqual(named(text, ...names), ["outbound|80||a.b.svc", "outbound|81|v1|a.b.svc"]);
});

test("culprits() does not take a name inside a longer one for itself", () => {
  assert.deepEqual(
    named("Error adding/updating listener(s) 10.0.0.1_8080: x", "10.0.0.1_80", "0.0.0.1_8080", "8080"),
    [],
  );
  assert.deepEqual(named("error in outbound|8000||a: x", "8000", "outbound|8000||a"), ["outbound|8000||a"]);
  assert.deepEqual(named("host a.b.svc:80 is odd", "a.b.svc", "a.b.svc:80"), ["a.b.svc:80"]);
});

test("culprits() finds a name in quotes, before a full stop and at the end", () => {
  assert.deepEqual(named("route '8000' is bad", "8000"), ["8000"]);
  assert.deepEqual(named("duplicate domain in route 8000. Fix it", "8000"), ["8000"]);
  assert.deepEqual(named("duplicate domain in route 8000", "8000"), ["8000"]);
});

test("culprits() is empty when the text names nobody", () => {
  assert.deepEqual(named("malformed IP address: foo", "outbound|80||a", ""), []);
});
