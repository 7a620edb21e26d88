import type { SendBudget } from "#model/ports.ts";

/** Nobody needs so many answers at once; each that waits holds memory too. */
const MAX_WAITING = 1_000;

/** Bytes that wait to be read, over all streams. A share of a budget is a budget of its own, and its bytes count for both. */
export class ByteBudget implements SendBudget {
  readonly #maxBytes: number;
  readonly #whole: ByteBudget | undefined;
  readonly #shares: ByteBudget[] = [];
  readonly #waiting = new Set<() => void>();
  #used = 0;

  constructor(maxBytes: number, whole?: ByteBudget) {
    this.#maxBytes = maxBytes;
    this.#whole = whole;
    if (whole !== undefined) whole.#shares.push(this);
  }

  get used(): number {
    return this.#used;
  }

  /** Nothing more is sent until something was read. One response always goes, however large. */
  get isSpent(): boolean {
    return this.#used >= this.#maxBytes || (this.#whole?.isSpent ?? false);
  }

  take(bytes: number): void {
    this.#used += bytes;
    this.#whole?.take(bytes);
  }

  giveBack(bytes: number): void {
    this.#used -= bytes;
    if (this.#whole !== undefined) this.#whole.giveBack(bytes);
    else this.#serveWaiting();
  }

  whenRoom(send: () => void): (() => void) | undefined {
    if (this.#waiting.size >= MAX_WAITING) return undefined;
    const isFirst = this.#waiting.size === 0;
    this.#waiting.add(send);
    if (isFirst) this.#serveWaiting();
    return () => void this.#waiting.delete(send);
  }

  /** One at a time: what is sent is made only now, which may take a while. */
  #serveWaiting(): void {
    const [next] = this.#waiting;
    if (next !== undefined && !this.isSpent) {
      this.#waiting.delete(next);
      if (this.#waiting.size > 0) setImmediate(() => this.#serveWaiting());
      next();
    }
    for (const share of this.#shares) share.#serveWaiting();
  }
}
