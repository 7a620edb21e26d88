import assert from "node:assert/strict";
import { test } from "node:test";
import { lineOfPath } from "./places.ts";

const TEXT = `
kind: VirtualService
spec:
  hosts: [a, b]
  http:
  - match:
    - uri: {prefix: /a}
    retry_policy:
      attempts: 3
  - route: []
"a.b": x
`;

test("lineOfPath() finds keys, items and quoted names", () => {
  assert.equal(lineOfPath(TEXT, ["kind"]), 2);
  assert.equal(lineOfPath(TEXT, ["spec", "http", 0, "match", 0, "uri", "prefix"]), 7);
  assert.equal(lineOfPath(TEXT, ["spec", "http", 1, "route"]), 10);
  assert.equal(lineOfPath(TEXT, ["a.b"]), 11);
});

test("lineOfPath() finds snake_case by its camelCase name", () => {
  assert.equal(lineOfPath(TEXT, ["spec", "http", 0, "retryPolicy", "attempts"]), 9);
});

test("lineOfPath() gives the nearest parent of what is not there", () => {
  assert.equal(lineOfPath(TEXT, ["spec", "http", 1, "timeout"]), 10);
  assert.equal(lineOfPath(TEXT, ["spec", "hosts", 7]), 4);
  assert.equal(lineOfPath(TEXT, ["nothing"]), 2);
  assert.equal(lineOfPath("", ["nothing"]), 1);
});
