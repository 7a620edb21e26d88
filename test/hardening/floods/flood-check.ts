/** What holds during and after every flood: the port for probes answers, memory stays, and legitimate callers are served. */
import assert from "node:assert/strict";
import type { FloodedProcess } from "../../support/flooded-process.ts";
import { Prober } from "../../support/prober.ts";

export interface FloodCheck {
  readonly process: FloodedProcess;
  /** Answers 200 while the program is well. */
  readonly probe: string;
  /** A legitimate caller is served; rejects when it is not. */
  readonly isServed: () => Promise<void>;
}

/** How long a flood lasts. Long enough that a limit that is missing shows, and short because there are many. */
export const FLOOD_MS = 700;
const MAX_MEGABYTES = 50;
/** Of the issue; half of the probes may be later, because attacker, prober and other tests share the processors. */
const MAX_MEDIAN_MS = 200;
const MAX_WORST_MS = 3_000;

/** Runs a flood until its time is over, and checks what has to hold. */
export async function withstands(check: FloodCheck, flood: (endAt: number) => Promise<void>): Promise<void> {
  const { process, probe, isServed } = check;
  const before = process.privateMegabytes();
  const prober = new Prober(probe);
  await prober.started();
  let most = before;
  let latencies: readonly number[] = [];
  const watch = setInterval(() => {
    if (!process.hasEnded) most = Math.max(most, process.privateMegabytes());
  }, 20);
  try {
    const [served, flooded] = await Promise.allSettled([isServed(), flood(performance.now() + FLOOD_MS)]);
    for (const result of [served, flooded]) if (result.status === "rejected") throw result.reason;
  } finally {
    clearInterval(watch);
    latencies = (await prober.stop()).toSorted((a, b) => a - b);
  }
  assert.equal(process.hasEnded, false, `the program ended:\n${process.output}`);
  await isServed();
  const [median = 0, worst = 0] = [latencies[latencies.length >> 1], latencies.at(-1)];
  const figures = `probes: ${latencies.length}, median ${median.toFixed()} ms, worst ${worst.toFixed()} ms`;
  const growth = `memory: from ${before.toFixed()} to ${most.toFixed()} MB`;
  if (globalThis.process.env.FLOOD_FIGURES !== undefined) console.log(`${figures}, ${growth}`);
  assert.ok(median <= MAX_MEDIAN_MS && worst <= MAX_WORST_MS, figures);
  assert.ok(most - before <= MAX_MEGABYTES, growth);
}
