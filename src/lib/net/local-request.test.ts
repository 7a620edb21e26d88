import assert from "node:assert/strict";
import { test } from "node:test";
import { localRequestProblem } from "./local-request.ts";

test("localRequestProblem() accepts requests for an address or localhost", () => {
  for (const host of ["127.0.0.1", "127.0.0.1:15020", "[::1]:15020", "localhost:9876", "LOCALHOST", "10.1.2.3:15020"])
    assert.equal(localRequestProblem({ host }), undefined, host);
  assert.equal(localRequestProblem({}), undefined);
});

test("localRequestProblem() rejects names that DNS rebinding can point at loopback", () => {
  for (const host of [
    "attacker.example:15020",
    "localhost.attacker.example",
    "127.0.0.1.attacker.example",
    "localhost:1@attacker.example",
    "[::1].attacker.example",
    "",
  ])
    assert.match(localRequestProblem({ host }) ?? "", /the Host header/, host);
  assert.match(localRequestProblem({ host: ["localhost", "attacker.example"] }) ?? "", /the Host header/);
});

test("localRequestProblem() rejects requests of web pages, except of the server's own pages", () => {
  const host = "localhost:9876";
  for (const origin of ["https://attacker.example", "null", "http://localhost:8080", "http://127.0.0.1:9876"])
    assert.match(localRequestProblem({ host, origin }) ?? "", /may not send requests/, origin);
  assert.equal(localRequestProblem({ host, origin: "http://localhost:9876" }), undefined);
});

test("localRequestProblem() rejects what a proxy passed on", () => {
  for (const name of ["x-forwarded-for", "x-forwarded-proto", "x-envoy-external-address", "via", "forwarded"])
    assert.match(localRequestProblem({ host: "localhost", [name]: "1" }) ?? "", /a proxy passed/, name);
});
