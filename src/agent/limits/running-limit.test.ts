import assert from "node:assert/strict";
import { test } from "node:test";
import { RunningLimit } from "./running-limit.ts";

test("RunningLimit refuses a peer that has too many requests running, and serves others", () => {
  const limit = new RunningLimit({ max: 4, maxPerPeer: 2, now: () => 0 });
  const begin = (peer: string) => limit.begin(peer, () => assert.fail("cut"));
  const end = begin("app");
  assert.ok(begin("app"));
  assert.equal(begin("app"), undefined);
  assert.ok(begin("prometheus"));
  end?.();
  assert.ok(begin("app"));
  assert.ok(begin("prometheus"));
  assert.equal(begin("kubelet"), undefined, "all places are taken");
});

test("RunningLimit cuts a request that has run for long when its place is needed", () => {
  let now = 0;
  const cut: string[] = [];
  const limit = new RunningLimit({ max: 2, maxPerPeer: 2, now: () => now });
  limit.begin("a", () => cut.push("first"));
  limit.begin("a", () => cut.push("second"));
  now = 9_999;
  assert.equal(
    limit.begin("b", () => undefined),
    undefined,
  );
  now = 10_000;
  assert.ok(limit.begin("b", () => undefined));
  assert.deepEqual([cut, limit.size], [["first"], 2]);
});
