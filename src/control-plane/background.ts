/** Loops that run beside the main flow. The first that fails ends it. */
export class Background {
  readonly #stopping = new AbortController();
  readonly #failure = Promise.withResolvers<never>();
  readonly #running: Promise<void>[] = [];

  constructor() {
    // Looked at by `raced`; until then a failure is no unhandled rejection.
    this.#failure.promise.catch(() => undefined);
  }

  /** Aborts when the loops are to end. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  run(loop: Promise<void>): void {
    this.#running.push(
      loop.catch((error: unknown) => {
        this.#failure.reject(error);
      }),
    );
  }

  /** Waits for something, unless a loop fails before it is there. */
  raced<T>(wanted: Promise<T>): Promise<T> {
    return Promise.race([wanted, this.#failure.promise]);
  }

  /** Ends all loops. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#running);
  }
}
