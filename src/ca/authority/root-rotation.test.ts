import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { before, describe, test } from "node:test";
import { selfSignedCa } from "../keys/self-signed.ts";
import { rotationStep } from "./root-rotation.ts";

const DAY = 86_400_000;
/** Certificates count whole seconds. */
const NOW = Math.floor(Date.now() / 1000) * 1000;
const RULES = { gracePercent: 20, maxTtlMs: 5 * DAY };

describe("rotationStep() of a root of 100 days, replaced in the last 20", () => {
  let current: X509Certificate;
  let next: X509Certificate;
  before(async () => {
    current = await root(NOW);
    next = await root(NOW + 80 * DAY);
  });

  async function root(now: number): Promise<X509Certificate> {
    const input = { trustDomain: "cluster.local", lifetimeMs: 100 * DAY, keyKind: "P-256", now } as const;
    return new X509Certificate((await selfSignedCa(input)).certificatePem);
  }

  test("waits before that", () => {
    assert.equal(rotationStep({ ...RULES, current, next: undefined, now: NOW + 79.9 * DAY }), "wait");
  });

  test("announces the next root then", () => {
    assert.equal(rotationStep({ ...RULES, current, next: undefined, now: NOW + 80 * DAY }), "announce");
  });

  test("signs with it when every certificate from before the announcement has ended", () => {
    assert.equal(rotationStep({ ...RULES, current, next, now: NOW + 84.9 * DAY }), "wait");
    assert.equal(rotationStep({ ...RULES, current, next, now: NOW + 85 * DAY }), "sign");
  });

  test("signs with it after half the grace period at the latest", () => {
    const rules = { ...RULES, maxTtlMs: 90 * DAY };
    assert.equal(rotationStep({ ...rules, current, next, now: NOW + 89.9 * DAY }), "wait");
    assert.equal(rotationStep({ ...rules, current, next, now: NOW + 90.1 * DAY }), "sign");
  });

  test("without a grace period replaces a root that has ended", () => {
    const rules = { ...RULES, gracePercent: 0 };
    assert.equal(rotationStep({ ...rules, current, next: undefined, now: NOW + 99.9 * DAY }), "wait");
    assert.equal(rotationStep({ ...rules, current, next: undefined, now: NOW + 100 * DAY }), "announce");
  });
});
