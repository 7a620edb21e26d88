/**
 * Asks for what the mesh wants to know from outside, and asks again from time to time.
 *
 *     snapshot --wanted--> one loop per wish: ask --> answers --> next snapshot
 *                             ^       |
 *                             + wait -+  as long as the answer holds, or a shorter time after a failure
 *
 * An answer stays while nobody answers any more, and is forgotten when nobody wants it any more.
 */
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import type { Source } from "#model/ports.ts";
import type { Snapshot } from "#model/snapshot.ts";

/** What is wanted; no two wishes have the same id. */
export interface Wish {
  readonly id: string;
}

/** An answer and for how long it holds. */
export interface Answer<Value> {
  readonly value: Value;
  readonly holdsMs: number;
}

export interface WantedAnswersOptions<W extends Wish, Value> {
  readonly source: Pick<Source, "current" | "subscribe">;
  readonly wanted: (snapshot: Snapshot) => readonly W[];
  /** Rejects when there is no answer. */
  readonly ask: (wish: W, signal: AbortSignal) => Promise<Answer<Value>>;
  readonly isSame: (before: Value, now: Value) => boolean;
  /** Takes all answers, after each that is new. */
  readonly give: (answers: ReadonlyMap<string, Value>) => void;
  /** Pauses after failures. */
  readonly retry: { readonly initialMs: number; readonly maxMs: number };
  readonly onAnswer: (wish: W, isNew: boolean) => void;
  readonly onFailure: (wish: W, reason: unknown, hasAnswer: boolean) => void;
}

interface Loop {
  readonly stop: AbortController;
  readonly ended: Promise<void>;
  /** Resolves after the first attempt. */
  readonly tried: Promise<void>;
}

export class WantedAnswers<W extends Wish, Value> {
  readonly #options: WantedAnswersOptions<W, Value>;
  readonly #loops = new Map<string, Loop>();
  readonly #answers = new Map<string, Value>();

  constructor(options: WantedAnswersOptions<W, Value>) {
    this.#options = options;
  }

  /** Follows the wishes of the mesh until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { source } = this.#options;
    const unsubscribe = source.subscribe((snapshot) => this.#follow(snapshot));
    this.#follow(source.current());
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", () => resolve(), { once: true });
    });
    unsubscribe();
    const running = [...this.#loops.values()];
    for (const { stop } of running) stop.abort();
    await Promise.all(running.map(({ ended }) => ended));
  }

  /** Resolves when all that is wanted now was asked for once, with success or not. */
  async tried(): Promise<void> {
    await Promise.all([...this.#loops.values()].map(({ tried }) => tried));
  }

  #follow(snapshot: Snapshot): void {
    const wanted = new Map(this.#options.wanted(snapshot).map((wish) => [wish.id, wish]));
    let forgotten = false;
    for (const [id, { stop }] of this.#loops) {
      if (wanted.has(id)) continue;
      stop.abort();
      this.#loops.delete(id);
      if (this.#answers.delete(id)) forgotten = true;
    }
    // Not now: those who are told of this snapshot are still being told.
    if (forgotten) queueMicrotask(() => this.#give());
    for (const [id, wish] of wanted) {
      if (this.#loops.has(id)) continue;
      const stop = new AbortController();
      const { promise: tried, resolve } = Promise.withResolvers<void>();
      this.#loops.set(id, { stop, tried, ended: this.#keep(wish, stop.signal, resolve) });
    }
  }

  #give(): void {
    this.#options.give(new Map(this.#answers));
  }

  async #keep(wish: W, signal: AbortSignal, onTried: () => void): Promise<void> {
    const backoff = new Backoff(this.#options.retry);
    while (!signal.aborted) {
      const holdsMs = await this.#ask(wish, signal);
      onTried();
      if (holdsMs !== undefined) backoff.reset();
      await sleep(holdsMs ?? backoff.next(), signal);
    }
    onTried();
  }

  /** For how long the answer holds; undefined when there is none. */
  async #ask(wish: W, signal: AbortSignal): Promise<number | undefined> {
    const { ask, isSame, onAnswer, onFailure } = this.#options;
    const before = this.#answers.get(wish.id);
    try {
      const { value, holdsMs } = await ask(wish, signal);
      if (signal.aborted) return undefined;
      const isNew = before === undefined || !isSame(before, value);
      onAnswer(wish, isNew);
      if (isNew) {
        this.#answers.set(wish.id, value);
        this.#give();
      }
      return holdsMs;
    } catch (thrown) {
      if (!signal.aborted) onFailure(wish, thrown, before !== undefined);
      return undefined;
    }
  }
}
