import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_ENVOY } from "../support/ads-envoy.ts";
import { compareVerdicts } from "./policies/compare-verdicts.ts";

test("10,000 random requests under random policies get from Envoy what we say of them", {
  skip: NO_ENVOY,
}, async () => {
  const { verdicts, outcomes } = await compareVerdicts({ verdicts: 10_000, seed: 1 });
  assert.ok(verdicts >= 10_000);
  for (const outcome of ["200", "200 asked", "401", "403", "echo", "closed"]) {
    assert.ok((outcomes[outcome] ?? 0) > 50, `${outcome} is hardly seen: ${JSON.stringify(outcomes)}`);
  }
});
