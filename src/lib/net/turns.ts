/** Work that others cause, one piece in each turn of the event loop: however much arrives at once, nothing else waits for all of it. */
export class Turns {
  readonly #waiting: (() => void)[] = [];

  run(work: () => void): void {
    if (this.#waiting.push(work) === 1) setImmediate(() => this.#next());
  }

  #next(): void {
    this.#waiting[0]?.();
    this.#waiting.shift();
    if (this.#waiting.length > 0) setImmediate(() => this.#next());
  }
}
