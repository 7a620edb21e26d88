import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger } from "#lib/log/log.ts";
import { eventually } from "../../../test/support/fake-control-plane.ts";
import type { Draining, Launch } from "./epochs.ts";
import { HotRestart, type PlannedLaunch } from "./hot-restart.ts";

const launchOf = (fingerprint: string, problem?: string): PlannedLaunch => ({
  fingerprint,
  hotRestartVersion: "11",
  start: () => Promise.reject(new Error("not used")),
  cleanup: async () => undefined,
  problem: async () => problem,
});

function restarts(plans: (PlannedLaunch | Error)[], results: boolean[] = []) {
  const replaced: Launch[] = [];
  const lines: string[] = [];
  const first = launchOf("a");
  const stop = new AbortController();
  const state: { draining: Draining | undefined } = { draining: undefined };
  const restart = new HotRestart({
    first,
    plan: async () => {
      const plan = plans.shift();
      if (plan === undefined || plan instanceof Error) throw plan ?? new Error("no plan");
      return plan;
    },
    replace: async (launch) => {
      replaced.push(launch);
      return results.shift() ?? true;
    },
    draining: () => state.draining,
    log: createLogger({ write: (line) => lines.push(line) }),
    signal: stop.signal,
  });
  const waits = () => lines.filter((line) => line.includes("Envoy is replaced when epoch 0 has drained")).length;
  return { restart, replaced, lines, first, stop, state, waits };
}

test("what changed is launched, what did not is launched only when it is asked for", async () => {
  const same = launchOf("a");
  const other = launchOf("b");
  const { restart, replaced } = restarts([launchOf("a"), other, launchOf("b"), same]);
  for (const why of ["changed", "changed", "changed", "asked"] as const) {
    restart.request(why);
    await restart.idle();
  }
  assert.deepEqual(replaced, [other, same]);
});

test("what Envoy would refuse, or what cannot be planned, is not launched", async () => {
  const { restart, replaced, lines } = restarts([
    launchOf("b", "it refuses the configuration: no"),
    new Error("no file"),
  ]);
  for (let i = 0; i < 2; i++) {
    restart.request("changed");
    await restart.idle();
  }
  assert.deepEqual(replaced, []);
  assert.match(
    lines.join(""),
    /Envoy is not replaced: it refuses the configuration: no\n.*Envoy is not replaced: no file/,
  );
});

test("after a launch that failed the one before it is launched again", async () => {
  const broken = launchOf("b");
  const { restart, replaced, first, lines } = restarts([broken], [false, true]);
  restart.request("changed");
  await restart.idle();
  assert.deepEqual(replaced, [broken, first]);
  assert.match(lines.join(""), /did not become ready: the old one goes on serving/);
});

test("requests that come meanwhile become one, and end the repetition of an old launch", async () => {
  const broken = launchOf("b");
  const good = launchOf("c");
  const { restart, replaced, first } = restarts([broken, good], [false, false, true]);
  restart.request("changed");
  await eventually("the repetition", () => replaced.length === 2);
  restart.request("asked");
  restart.request("changed");
  await restart.idle();
  assert.deepEqual(replaced, [broken, first, good]);
});

test("a replacement waits for an Envoy that drains, and the newest is launched then", async () => {
  const [older, newest] = [launchOf("b"), launchOf("c")];
  const { restart, replaced, state, waits } = restarts([older, newest]);
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  state.draining = { what: "epoch 0", gone };
  restart.request("changed");
  await eventually("the wait", () => waits() === 1);
  restart.request("changed");
  await eventually("the wait of the newest", () => waits() === 2);
  assert.deepEqual(replaced, []);
  resolve();
  await restart.idle();
  assert.deepEqual(replaced, [newest]);
});

test("a replacement that was asked for waits even if nothing has changed when it is looked at again", async () => {
  const again = launchOf("a");
  const { restart, replaced, state, waits } = restarts([launchOf("a"), again]);
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  state.draining = { what: "epoch 0", gone };
  restart.request("asked");
  await eventually("the wait", () => waits() === 1);
  restart.request("changed");
  await eventually("the next look", () => waits() === 2);
  resolve();
  await restart.idle();
  assert.deepEqual(replaced, [again]);
});

test("what waits for a drain is not launched at the end", async () => {
  const { restart, replaced, stop, state, waits } = restarts([launchOf("b")]);
  state.draining = { what: "epoch 0", gone: new Promise(() => undefined) };
  restart.request("changed");
  await eventually("the wait", () => waits() === 1);
  stop.abort();
  await restart.idle();
  assert.deepEqual(replaced, []);
});

test("nothing is launched any more at the end", async () => {
  const { restart, replaced, stop } = restarts([launchOf("b")]);
  stop.abort();
  restart.request("asked");
  await restart.idle();
  assert.deepEqual(replaced, []);
});
