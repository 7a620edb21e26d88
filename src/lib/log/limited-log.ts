/** Limits the lines that others can cause. */
import type { LogFields, Logger } from "./log.ts";

export interface LimitedLogOptions {
  readonly log: Pick<Logger, "warn">;
  readonly now: () => number;
  /** Lines in each window; later ones are only counted. */
  readonly lines?: number;
  readonly windowMs?: number;
}

/** Warnings about peers: a flood of refusals writes a few lines and then their number. */
export class LimitedLog {
  readonly #options: Required<LimitedLogOptions>;
  #windowEnd = Number.NEGATIVE_INFINITY;
  #written = 0;
  #omitted = 0;

  constructor(options: LimitedLogOptions) {
    this.#options = { lines: 20, windowMs: 10_000, ...options };
  }

  warn(message: string, fields?: LogFields): void {
    const { log, now, lines, windowMs } = this.#options;
    if (now() >= this.#windowEnd) {
      if (this.#omitted > 0) log.warn(`${this.#omitted} similar lines were omitted`);
      this.#windowEnd = now() + windowMs;
      this.#written = 0;
      this.#omitted = 0;
    }
    if (this.#written++ < lines) log.warn(message, fields);
    else this.#omitted++;
  }
}
