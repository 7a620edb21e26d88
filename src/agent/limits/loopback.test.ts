import assert from "node:assert/strict";
import { test } from "node:test";
import { isLoopback } from "./loopback.ts";

test("isLoopback() accepts loopback in all of its forms", () => {
  for (const address of ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]) assert.ok(isLoopback(address), address);
  for (const address of ["", "10.0.0.1", "::2", "fe80::1", "128.0.0.1", "::ffff:10.0.0.1"])
    assert.ok(!isLoopback(address), address);
});

test("CVE-2022-39388 class: isLoopback() rejects the address from which Envoy passes on what others sent", () => {
  for (const address of ["127.0.0.6", "::ffff:127.0.0.6", "::6"]) assert.ok(!isLoopback(address), address);
});
