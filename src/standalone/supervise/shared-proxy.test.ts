import assert from "node:assert/strict";
import test from "node:test";
import { setImmediate } from "node:timers/promises";
import type { SharedMemberPlan } from "../plan/shared-agent.ts";
import { SharedProxy } from "./shared-proxy.ts";

const PLAN: SharedMemberPlan = {
  name: "web.default",
  etc: "/etc",
  workload: { folder: "/", enter: [], user: 0, env: {}, flags: {}, log: "" },
};

/** A proxy of an agent that does what it is told, with what is noted of both. */
function served() {
  const noted: string[] = [];
  const note = (what: string) => async () => void noted.push(what);
  const proxy = new SharedProxy({
    plan: PLAN,
    agent: { serve: note("served"), forget: note("forgotten") },
    onChange: ({ state, restarts, lastExit }) => void noted.push(`${state} ${restarts} ${lastExit ?? ""}`.trim()),
    beside: async (signal) => {
      noted.push("watched");
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      noted.push("left");
    },
  });
  return { proxy, noted };
}

test("SharedProxy is served until the signal aborts, and watched in each of its lives", async () => {
  const { proxy, noted } = served();
  const stop = new AbortController();
  const running = proxy.run(stop.signal);
  await setImmediate();
  proxy.told({ state: "starting" }, 7);
  await setImmediate();
  assert.equal(proxy.status.pid, 7);
  proxy.told({ state: "ended", reason: "Envoy ended with status 137" }, 7);
  proxy.told({ state: "starting" }, 7);
  await setImmediate();
  stop.abort();
  await running;
  assert.deepEqual(noted, [
    ...["served", "running 0", "watched", "pausing 0 ended: Envoy ended with status 137"],
    ...["running 1 ended: Envoy ended with status 137", "left", "watched", "forgotten", "left"],
    "stopped 1 ended: Envoy ended with status 137",
  ]);
});

test("SharedProxy counts ends that come soon, also those of the agent itself", async () => {
  const { proxy } = served();
  for (const reason of ["a", "b"]) {
    proxy.told({ state: "starting" }, 7);
    proxy.told({ state: "failed", reason }, 7);
  }
  proxy.abandoned("the shared agent was killed by SIGKILL");
  assert.equal(proxy.status.lastExit, "ended: b", "it was not running");
  proxy.told({ state: "starting" }, 7);
  proxy.abandoned("the shared agent was killed by SIGKILL");
  assert.equal(proxy.status.lastExit, "ended: the shared agent was killed by SIGKILL");
  assert.equal(proxy.status.quickExits, 3);
});

test("SharedProxy that is stopped before it began serves nobody", async () => {
  const { proxy, noted } = served();
  await proxy.run(AbortSignal.abort());
  assert.deepEqual(noted, ["forgotten", "stopped 0"]);
});
