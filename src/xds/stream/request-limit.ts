/** How long a stream may wait for its turn, as by istiod. */
const MAX_WAIT_MS = 1_000;

/** Spreads new streams over time: so many a second, each after the one before. */
export class RequestLimit {
  readonly #intervalMs: number;
  #next = Number.NEGATIVE_INFINITY;

  constructor(perSecond: number) {
    this.#intervalMs = 1_000 / perSecond;
  }

  /** Milliseconds until its turn; undefined when that is too far away. */
  turn(now: number): number | undefined {
    const at = Math.max(now, this.#next);
    if (at - now > MAX_WAIT_MS) return undefined;
    this.#next = at + this.#intervalMs;
    return at - now;
  }
}
