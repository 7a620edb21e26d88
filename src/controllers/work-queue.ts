/** Work by key: each key at most once at a time, again when it was asked for meanwhile, and later when it failed. */
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";

export interface WorkQueueOptions {
  work(key: string): Promise<void>;
  /** Tells of a failure; the key is tried again. */
  failed(key: string, problem: unknown): void;
}

const RETRY = { initialMs: 200, maxMs: 30_000 };
/** Keys that are worked on at the same time. */
const PARALLEL = 8;

export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #waiting = new Set<string>();
  readonly #busy = new Set<string>();
  readonly #pauses = new Map<string, Backoff>();
  readonly #stop = new AbortController();
  readonly #running = new Set<Promise<void>>();

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  add(key: string): void {
    this.#waiting.add(key);
    this.#next();
  }

  /** Lets what is under way end, and begins nothing more. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
  }

  #next(): void {
    for (const key of this.#waiting) {
      if (this.#stop.signal.aborted || this.#busy.size >= PARALLEL) return;
      if (this.#busy.has(key)) continue;
      this.#waiting.delete(key);
      this.#busy.add(key);
      const running = this.#work(key).finally(() => {
        this.#running.delete(running);
        this.#busy.delete(key);
        this.#next();
      });
      this.#running.add(running);
    }
  }

  async #work(key: string): Promise<void> {
    try {
      await this.#options.work(key);
      this.#pauses.delete(key);
    } catch (problem) {
      if (this.#stop.signal.aborted) return;
      this.#options.failed(key, problem);
      const pause = this.#pauses.get(key) ?? new Backoff(RETRY);
      this.#pauses.set(key, pause);
      void sleep(pause.next(), this.#stop.signal).then(() => this.add(key));
    }
  }
}
