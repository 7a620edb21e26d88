/** Bounds the expensive requests that run at the same time, in total and for each peer. */

export interface RunningLimitOptions {
  readonly max: number;
  readonly maxPerPeer: number;
  readonly now?: () => number;
}

interface Running {
  readonly peer: string;
  readonly since: number;
  /** Ends the request. */
  readonly cut: () => void;
}

/** A new request may replace one that has run this long. Otherwise a client that never reads its response would keep its place forever. */
const KEEPS_PLACE_MS = 10_000;

export class RunningLimit {
  readonly #options: RunningLimitOptions;
  /** The oldest first. */
  readonly #running = new Set<Running>();

  constructor(options: RunningLimitOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#running.size;
  }

  /** Begins a request. Returns the way to say that it has ended, or undefined when there is no place for it. */
  begin(peer: string, cut: () => void): (() => void) | undefined {
    const { max, maxPerPeer } = this.#options;
    const own = [...this.#running].filter((running) => running.peer === peer);
    if (own.length >= maxPerPeer && !this.#replace(own[0])) return undefined;
    if (this.#running.size >= max && !this.#replace([...this.#running][0])) return undefined;
    const running = { peer, since: this.#now(), cut };
    this.#running.add(running);
    return () => void this.#running.delete(running);
  }

  #replace(oldest: Running | undefined): boolean {
    if (oldest === undefined || this.#now() - oldest.since < KEEPS_PLACE_MS) return false;
    this.#running.delete(oldest);
    oldest.cut();
    return true;
  }

  #now(): number {
    return (this.#options.now ?? performance.now.bind(performance))();
  }
}
