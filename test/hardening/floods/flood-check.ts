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

type Flood = (endAt: number) => Promise<void>;

/** How long a flood lasts. Long enough that a limit that is missing shows, and short because there are many. */
const FLOOD_MS = 400;
const MAX_MEGABYTES = 50;
/** For half of the probes; others may be later, because attacker, prober and other tests share the processors. */
const MAX_MEDIAN_MS = 200;
const MAX_WORST_MS = 3_000;
/** Attempts to answer in time: a busy machine delays probes as a flood does, but not three times in a row. */
const ATTEMPTS = 3;

/** Runs a flood until its time is over, and checks what has to hold. */
export async function withstands(check: FloodCheck, flood: Flood): Promise<void> {
  const figures: string[] = [];
  while (figures.length < ATTEMPTS) {
    const { median, worst, megabytes } = await flooded(check, flood);
    figures.push(`median ${median.toFixed()} ms, worst ${worst.toFixed()} ms, ${megabytes.toFixed()} MB more`);
    if (process.env.FLOOD_FIGURES !== undefined) console.log(figures.at(-1));
    assert.ok(megabytes <= MAX_MEGABYTES, figures.join("; "));
    if (median <= MAX_MEDIAN_MS && worst <= MAX_WORST_MS) return;
  }
  assert.fail(`probes: ${figures.join("; ")}`);
}

async function flooded({ process, probe, isServed }: FloodCheck, flood: Flood) {
  const before = process.privateMegabytes();
  const prober = new Prober(probe);
  await prober.started();
  let most = before;
  let latencies: readonly number[] = [];
  const watch = setInterval(() => {
    if (!process.hasEnded) most = Math.max(most, process.privateMegabytes());
  }, 20);
  try {
    const results = await Promise.allSettled([isServed(), flood(performance.now() + FLOOD_MS)]);
    for (const result of results) if (result.status === "rejected") throw result.reason;
  } finally {
    clearInterval(watch);
    latencies = (await prober.stop()).toSorted((a, b) => a - b);
  }
  assert.equal(process.hasEnded, false, `the program ended:\n${process.output}`);
  await isServed();
  const [median = 0, worst = 0] = [latencies[latencies.length >> 1], latencies.at(-1)];
  return { median, worst, megabytes: most - before };
}
