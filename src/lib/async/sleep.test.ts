import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { sleep } from "./sleep.ts";

test("sleep() ends early when the signal is aborted, and at once when it already was", async () => {
  const stop = new AbortController();
  const sleeping = sleep(60_000, stop.signal);
  stop.abort();
  await sleeping;
  await sleep(60_000, stop.signal);
});

test("sleep() ends after its time and keeps no listener", async () => {
  const stop = new AbortController();
  await sleep(1, stop.signal);
  assert.equal(getEventListeners(stop.signal, "abort").length, 0);
});

test("sleep() does not overflow the timer with a very long time", async () => {
  const stop = new AbortController();
  let ended = false;
  const sleeping = sleep(2 ** 40, stop.signal).then(() => {
    ended = true;
  });
  await sleep(5, new AbortController().signal);
  assert.equal(ended, false);
  stop.abort();
  await sleeping;
});
