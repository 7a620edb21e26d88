import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger } from "#lib/log/log.ts";
import { eventually } from "../../../test/support/fake-control-plane.ts";
import { Epochs, type EpochsOptions, type Launch } from "./epochs.ts";
import type { ProcessExit } from "./process.ts";

/** Launches whose processes live until they are killed or ended by the test. */
function fakeLaunches() {
  const events: string[] = [];
  const ends: ((exit: ProcessExit) => void)[] = [];
  const launch: Launch = {
    start: async (epoch) => {
      events.push(`start ${epoch}`);
      const { promise: exited, resolve } = Promise.withResolvers<ProcessExit>();
      ends[epoch] = resolve;
      return {
        exited,
        kill: () => {
          events.push(`kill ${epoch}`);
          resolve({ code: null, signal: "SIGKILL" });
        },
      };
    },
    cleanup: async (epoch) => void events.push(`cleanup ${epoch}`),
  };
  return { launch, events, ends };
}

function optionsOf(events: string[], isReady: EpochsOptions["isReady"] = async () => true) {
  const lines: string[] = [];
  const options: EpochsOptions = {
    isReady,
    forgetStarting: async () => void events.push("forget"),
    log: createLogger({ write: (line) => lines.push(line) }),
    readyTimeoutMs: 500,
    checkEveryMs: 1,
  };
  return { options, lines };
}

test("an epoch that becomes ready replaces the current one, which ends by itself", async () => {
  const { launch, events, ends } = fakeLaunches();
  const { options, lines } = optionsOf(events);
  const epochs = await Epochs.start(launch, options);
  assert.equal(await epochs.replace(launch), true);
  assert.equal(epochs.current, 1);
  ends[0]?.({ code: 0, signal: null });
  await eventually("its end", () => events.includes("cleanup 0"));
  assert.deepEqual(events, ["start 0", "start 1", "cleanup 0"]);
  assert.match(
    lines.join(""),
    /Received new config, creating new Envoy epoch 1\n[\s\S]*Epoch 1 serves; epoch 0 drains/,
  );
  ends[1]?.({ code: 3, signal: null });
  assert.deepEqual(await epochs.exited, { code: 3, signal: null });
});

test("draining() names epochs that were replaced until they are gone", async () => {
  const { launch, events, ends } = fakeLaunches();
  const epochs = await Epochs.start(launch, optionsOf(events).options);
  assert.equal(epochs.draining(), undefined);
  await epochs.replace(launch);
  const draining = epochs.draining();
  assert.equal(draining?.what, "epoch 0");
  ends[0]?.({ code: 0, signal: null });
  await draining?.gone;
  await eventually("nothing", () => epochs.draining() === undefined);
});

test("an epoch that is not ready in time is killed, and the next attempt has its number", async () => {
  const { launch, events } = fakeLaunches();
  let ready = false;
  const { options, lines } = optionsOf(events, async () => ready);
  const epochs = await Epochs.start(launch, options);
  assert.equal(await epochs.replace(launch), false);
  assert.deepEqual(events, ["start 0", "start 1", "kill 1", "cleanup 1", "forget"]);
  assert.match(lines.join(""), /error\tEpoch 1 is not ready after 500 ms\n.*warn\tAborting epoch 1/);
  ready = true;
  assert.equal(await epochs.replace(launch), true);
  assert.equal(epochs.current, 1);
});

test("an epoch that ends before it is ready does not end the current one", async () => {
  const { launch, events, ends } = fakeLaunches();
  const { options, lines } = optionsOf(events, async () => false);
  const epochs = await Epochs.start(launch, { ...options, readyTimeoutMs: 60_000 });
  const replaced = epochs.replace(launch);
  await eventually("its start", () => ends[1] !== undefined);
  ends[1]?.({ code: 1, signal: null });
  assert.equal(await replaced, false);
  assert.match(lines.join(""), /Epoch 1 ended with status 1 before it was ready/);
  assert.equal(epochs.current, 0);
});

test("the end of the current epoch is no end while another takes over", async () => {
  const { launch, events, ends } = fakeLaunches();
  let ready = false;
  const { options } = optionsOf(events, async () => ready);
  const epochs = await Epochs.start(launch, { ...options, readyTimeoutMs: 60_000 });
  const replaced = epochs.replace(launch);
  await eventually("its start", () => ends[1] !== undefined);
  ends[0]?.({ code: null, signal: "SIGSEGV" });
  ready = true;
  assert.equal(await replaced, true);
  ends[1]?.({ code: 0, signal: null });
  assert.deepEqual(await epochs.exited, { code: 0, signal: null });
});

test("one replacement follows the other", async () => {
  const { launch, events } = fakeLaunches();
  const epochs = await Epochs.start(launch, optionsOf(events).options);
  assert.deepEqual(await Promise.all([epochs.replace(launch), epochs.replace(launch)]), [true, true]);
  assert.equal(epochs.current, 2);
});

test("kill() ends all epochs, also one that is being started", async () => {
  const { launch, events, ends } = fakeLaunches();
  const { options } = optionsOf(events, async () => false);
  const epochs = await Epochs.start(launch, { ...options, readyTimeoutMs: 60_000 });
  const replaced = epochs.replace(launch);
  await eventually("its start", () => ends[1] !== undefined);
  epochs.kill();
  assert.equal(await replaced, false);
  assert.equal((await epochs.exited).signal, "SIGKILL");
  assert.ok(events.includes("cleanup 0") && events.includes("cleanup 1"));
});
