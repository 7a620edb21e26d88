/**
 * How late the event loop is. Node's own monitor wakes the process a hundred times a second, which is most of what an idle
 * control plane costs; this one looks that often only while there is work to be late with.
 */
import { createHistogram, performance } from "node:perf_hooks";

const BUSY_EVERY_MS = 10;
const IDLE_EVERY_MS = 250;
/** Of its time, from which on a loop has work. */
const BUSY_SHARE = 0.05;
const NANOSECONDS = 1e6;

/** Seconds that timers were late. */
export interface DelayFigures {
  readonly last: number;
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly stddev: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

export class LoopDelay implements Disposable {
  readonly #late = createHistogram();
  readonly #busyShare: () => number;
  #lastMs = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `busyShare` tells which part of its time the loop had work, since it was asked last. */
  constructor(busyShare: () => number = shareOfThisLoop()) {
    this.#busyShare = busyShare;
    this.#lookAfter(IDLE_EVERY_MS);
  }

  /** The figures since they were taken last. */
  take(): DelayFigures {
    const late = this.#late;
    const seconds = (nanoseconds: number) => (late.count === 0 ? 0 : nanoseconds / 1e9);
    const figures = {
      last: this.#lastMs / 1000,
      min: seconds(late.min),
      max: seconds(late.max),
      mean: seconds(late.mean),
      stddev: seconds(late.stddev),
      p50: seconds(late.percentile(50)),
      p90: seconds(late.percentile(90)),
      p99: seconds(late.percentile(99)),
    };
    late.reset();
    return figures;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #lookAfter(ms: number): void {
    const due = performance.now() + ms;
    this.#timer = setTimeout(() => {
      this.#lastMs = Math.max(0, performance.now() - due);
      this.#late.record(Math.max(1, Math.round(this.#lastMs * NANOSECONDS)));
      this.#lookAfter(this.#busyShare() > BUSY_SHARE ? BUSY_EVERY_MS : IDLE_EVERY_MS);
    }, ms).unref();
  }
}

function shareOfThisLoop(): () => number {
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization;
  };
}
