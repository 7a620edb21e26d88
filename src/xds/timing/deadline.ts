import type { Clock } from "./clock.ts";

/** Something that has to be over in a given time, again and again. A timer runs once in that time, not once for each. */
export class Deadline {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #missed: () => void;
  #dueAt = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, ms: number, missed: () => void) {
    this.#clock = clock;
    this.#ms = ms;
    this.#missed = missed;
  }

  /** It begins, at that time. */
  begin(now: number): void {
    this.#dueAt = now + this.#ms;
    this.#cancel ??= this.#clock.after(this.#ms, () => this.#look());
  }

  /** It is over. */
  end(): void {
    this.#dueAt = Number.POSITIVE_INFINITY;
  }

  /** Nothing begins any more. */
  stop(): void {
    this.end();
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #look(): void {
    this.#cancel = undefined;
    const left = this.#dueAt - this.#clock.now();
    if (left <= 0) this.#missed();
    else if (Number.isFinite(left)) this.#cancel = this.#clock.after(left, () => this.#look());
  }
}
