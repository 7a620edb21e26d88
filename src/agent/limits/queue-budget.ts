/** Memory that waiting messages of several queues share. Used where nobody can wait for room, as both sides would wait for each other. */
export class QueueBudget {
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The part of one queue. */
  share(): QueueShare {
    return new QueueShare((bytes) => {
      if (bytes > 0 && this.#bytes + bytes > this.#maxBytes) return false;
      this.#bytes += bytes;
      return true;
    });
  }
}

export class QueueShare {
  readonly #change: (bytes: number) => boolean;
  #bytes = 0;
  #closed = false;

  constructor(change: (bytes: number) => boolean) {
    this.#change = change;
  }

  /** Reserves room for a message. Returns false when the queue is full. */
  take(bytes: number): boolean {
    if (this.#closed || !this.#change(bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  /** A message has left. */
  give(bytes: number): void {
    if (this.#closed) return;
    this.#bytes -= bytes;
    this.#change(-bytes);
  }

  /** Gives all room back. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#change(-this.#bytes);
  }
}
