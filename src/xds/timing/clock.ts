/** The global of that name is looked up anew each time. */
import { performance } from "node:perf_hooks";

/** Time, handed in so that tests need not wait. */
export interface Clock {
  /** Milliseconds since 1970, and never going backwards. */
  now(): number;
  /** Calls back once; gives the way to prevent it. */
  after(ms: number, callback: () => void): () => void;
}

export const SYSTEM_CLOCK: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};
