/**
 * Two control planes that both think an object is theirs would write it in turns, as fast as the API server lets them. Who
 * sees his own writing undone again and again waits longer each time.
 */

const WINDOW_MS = 60_000;
/** What people do by hand is put right at once. */
const FREE = 8;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

export class Rivals {
  readonly #now: () => number;
  readonly #writes = new Map<string, { readonly count: number; readonly last: number }>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The object was written. */
  wrote(key: string): void {
    this.#writes.set(key, { count: this.#recent(key) + 1, last: this.#now() });
  }

  /** How long to wait before it is written again; 0 for not at all. */
  pauseMs(key: string): number {
    const beyond = this.#recent(key) - FREE;
    if (beyond < 0) return 0;
    const due = (this.#writes.get(key)?.last ?? 0) + Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** beyond);
    return Math.max(0, due - this.#now());
  }

  forget(key: string): void {
    this.#writes.delete(key);
  }

  /** Writes in a row, none of them long after the one before. */
  #recent(key: string): number {
    const known = this.#writes.get(key);
    return known === undefined || this.#now() - known.last > WINDOW_MS + LONGEST_PAUSE_MS ? 0 : known.count;
  }
}
