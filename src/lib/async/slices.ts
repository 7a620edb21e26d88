import { setImmediate } from "node:timers/promises";
import type { Steps } from "./steps.ts";

/**
 * Lets long work share the event loop: whoever works asks between two steps whether its slice is over, and if so waits
 * until everybody else had a turn.
 */
export class Slices {
  readonly #now: () => number;
  readonly #sliceMs: number;
  #start: number;

  constructor(now: () => number, sliceMs: number) {
    this.#now = now;
    this.#sliceMs = sliceMs;
    this.#start = now();
  }

  get isOver(): boolean {
    return this.#now() - this.#start >= this.#sliceMs;
  }

  async next(): Promise<void> {
    await setImmediate();
    this.#start = this.#now();
  }

  /** The result of the steps, with a turn for everybody else whenever a slice is over. */
  async run<Value>(steps: Steps<Value>): Promise<Value> {
    let step = steps.next();
    while (step.done !== true) {
      if (this.isOver) await this.next();
      step = steps.next();
    }
    return step.value;
  }
}
