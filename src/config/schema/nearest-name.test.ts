import assert from "node:assert/strict";
import { test } from "node:test";
import { nearestName } from "./nearest-name.ts";

const NAMES = ["hosts", "http", "gateways", "exportTo", "retries"];

test("nearestName() finds a name with a few wrong letters", () => {
  for (const [given, meant] of [
    ["hots", "hosts"],
    ["host", "hosts"],
    ["htpt", "http"],
    ["gatewyas", "gateways"],
    ["exportto", "exportTo"],
    ["export_to", "exportTo"],
  ] as const) {
    assert.equal(nearestName(given, NAMES), meant, given);
  }
});

test("nearestName() suggests nothing for a name that resembles none", () => {
  for (const given of ["", "x", "completely", "h".repeat(1_000_000)])
    assert.equal(nearestName(given, NAMES), undefined);
});
