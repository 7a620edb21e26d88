/**
 * Coverage of single inputs, from V8's precise block coverage. V8 counts how often each block of a function ran since the
 * last question, and reports only functions that ran.
 */
import { type Profiler, Session } from "node:inspector";

export class Coverage {
  readonly #session = new Session();
  readonly #isCounted: (url: string) => boolean;
  /** By function: 1 for each character of its source that ran. */
  #seen = new Map<string, Uint8Array>();

  constructor(isCounted: (url: string) => boolean) {
    this.#isCounted = isCounted;
    this.#session.connect();
    this.#session.post("Profiler.enable");
    // Without counts V8 does not report functions once they are optimized.
    this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  /** Forgets what ran since the last question. */
  discard(): void {
    this.#take();
  }

  /** Forgets everything, so that each block is new again. */
  reset(): void {
    this.#seen = new Map();
    this.#take();
  }

  /** Whether a block ran since the last question that was never added. */
  hasNew(): boolean {
    return this.#counted().some(([url, one]) => this.#merge(url, one, false));
  }

  /** Adds the blocks that ran since the last question. Returns whether one of them is new. */
  add(): boolean {
    return this.#counted().filter(([url, one]) => this.#merge(url, one, true)).length > 0;
  }

  stop(): void {
    this.#session.disconnect();
  }

  #take(): Profiler.ScriptCoverage[] {
    let result: Profiler.ScriptCoverage[] = [];
    // In the same thread the answer comes before the call returns.
    this.#session.post("Profiler.takePreciseCoverage", (error, answer) => {
      if (error === null) result = answer.result;
    });
    return result;
  }

  #counted(): [url: string, ran: Profiler.FunctionCoverage][] {
    return this.#take()
      .filter(({ url }) => this.#isCounted(url))
      .flatMap(({ url, functions }) => functions.map((one): [string, Profiler.FunctionCoverage] => [url, one]));
  }

  #merge(url: string, { ranges }: Profiler.FunctionCoverage, keep: boolean): boolean {
    const [whole] = ranges;
    if (whole === undefined) return false;
    const start = whole.startOffset;
    const key = `${url}:${start}:${whole.endOffset}`;
    const seen = this.#seen.get(key) ?? new Uint8Array(whole.endOffset - start);
    const now = new Uint8Array(seen.length);
    // Inner ranges follow the outer ones and replace their counts.
    for (const { startOffset, endOffset, count } of ranges)
      now.fill(count === 0 ? 0 : 1, startOffset - start, endOffset - start);
    const isNew = now.some((ran, i) => ran > (seen[i] ?? 0));
    if (keep && isNew)
      this.#seen.set(
        key,
        seen.map((ran, i) => ran | (now[i] ?? 0)),
      );
    return isNew;
  }
}
