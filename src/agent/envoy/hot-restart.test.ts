import assert from "node:assert/strict";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createLogger } from "#lib/log.ts";
import { eventually, temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import type { Launch } from "./epochs.ts";
import { HotRestart, type PlannedLaunch } from "./hot-restart.ts";
import { watchFiles } from "./watch-files.ts";

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
    log: createLogger({ write: (line) => lines.push(line) }),
    signal: stop.signal,
  });
  return { restart, replaced, lines, first, stop };
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

test("nothing is launched any more at the end", async () => {
  const { restart, replaced, stop } = restarts([launchOf("b")]);
  stop.abort();
  restart.request("asked");
  await restart.idle();
  assert.deepEqual(replaced, []);
});

test("watchFiles() reports replaced files once, and nothing after the end", async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, "a"));
  const file = join(folder, "a/envoy");
  writeFileSync(file, "1");
  const stop = new AbortController();
  let changes = 0;
  watchFiles([file, join(folder, "none/x")], () => changes++, stop.signal);
  writeFileSync(`${file}.new`, "2");
  renameSync(`${file}.new`, file);
  await eventually("the change", () => changes > 0);
  assert.equal(changes, 1);
  stop.abort();
  writeFileSync(file, "3");
  await new Promise((resolve) => setTimeout(resolve, 600));
  assert.equal(changes, 1);
});
