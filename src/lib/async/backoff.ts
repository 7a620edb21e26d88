/** Growing pauses between attempts, with jitter, so that many clients do not come back at the same moment. */
export interface BackoffOptions {
  readonly initialMs: number;
  readonly maxMs: number;
  /** In [0, 1). */
  readonly random?: () => number;
}

const FACTOR = 1.5;
/** A pause lies this far around its middle, as a part of it. */
const SPREAD = 0.5;

export class Backoff {
  readonly #options: BackoffOptions;
  #middleMs: number;

  constructor(options: BackoffOptions) {
    this.#options = options;
    this.#middleMs = options.initialMs;
  }

  /** Length of the next pause. */
  next(): number {
    const { maxMs, random = Math.random } = this.#options;
    const pause = this.#middleMs * (1 - SPREAD + 2 * SPREAD * random());
    this.#middleMs = Math.min(maxMs, this.#middleMs * FACTOR);
    return Math.min(maxMs, pause);
  }

  /** After a success the next failure starts from the beginning. */
  reset(): void {
    this.#middleMs = this.#options.initialMs;
  }
}
