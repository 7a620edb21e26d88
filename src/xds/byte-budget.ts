/** Bytes that wait to be read by proxies, over all streams. */
export class ByteBudget {
  readonly #maxBytes: number;
  #used = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get used(): number {
    return this.#used;
  }

  /** Nothing more is sent until something was read. One response always goes, however large. */
  get isSpent(): boolean {
    return this.#used >= this.#maxBytes;
  }

  take(bytes: number): void {
    this.#used += bytes;
  }

  giveBack(bytes: number): void {
    this.#used -= bytes;
  }
}
