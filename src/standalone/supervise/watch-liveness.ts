/** Whether an app is alive, asked for ever while it runs. */
import { sleep } from "#lib/async/sleep.ts";
import type { ProbeResult, ProbeTiming } from "../fabric/probe.ts";

export interface LivenessInput {
  readonly ask: () => Promise<ProbeResult>;
  readonly timing: Pick<ProbeTiming, "initialDelayMs" | "periodMs" | "failureThreshold">;
  /** Called once, with the reason, after as many failures in a row as make it dead. */
  readonly onDead: (reason: string) => void;
}

export async function watchLiveness({ ask, timing, onDead }: LivenessInput, signal: AbortSignal): Promise<void> {
  let failures = 0;
  await sleep(timing.initialDelayMs, signal);
  while (!signal.aborted) {
    const result = await ask();
    if (signal.aborted) return;
    failures = result === undefined ? 0 : failures + 1;
    if (result !== undefined && failures >= timing.failureThreshold) {
      onDead(result);
      return;
    }
    await sleep(timing.periodMs, signal);
  }
}
