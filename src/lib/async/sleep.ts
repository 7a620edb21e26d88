/** Waits; ends early, and without an error, when the signal is aborted: loops look at the signal themselves. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, Math.min(ms, LONGEST_TIMER_MS));
    signal.addEventListener("abort", finish);
  });
}

/** A longer timer fires at once in Node. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;
