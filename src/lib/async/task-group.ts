/**
 * Long-lived tasks that end together. A task gets the group's signal and resolves once it has stopped. The first task that
 * fails is reported to whoever waits with `until`; leaving the group's scope stops all tasks and waits for them:
 *
 *     await using tasks = new TaskGroup(signal);
 *     tasks.start((signal) => source.run(signal));
 *     await tasks.until(ready);
 */
export class TaskGroup implements AsyncDisposable {
  readonly #stopping = new AbortController();
  readonly #failure = Promise.withResolvers<never>();
  readonly #running = new Set<Promise<void>>();

  /** Its tasks also stop when the parent aborts. */
  constructor(parent?: AbortSignal) {
    // `until` looks at it; before that, a failure is no unhandled rejection.
    this.#failure.promise.catch(() => undefined);
    if (parent === undefined) return;
    const stop = () => this.#stopping.abort(parent.reason);
    parent.addEventListener("abort", stop, { once: true });
    this.signal.addEventListener("abort", () => parent.removeEventListener("abort", stop), { once: true });
    if (parent.aborted) stop();
  }

  /** Aborts when the tasks are to stop. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Starts a task. */
  start(task: (signal: AbortSignal) => Promise<unknown>): void {
    const running: Promise<void> = task(this.signal).then(
      () => void this.#running.delete(running),
      (error: unknown) => {
        this.#running.delete(running);
        this.#failure.reject(error);
      },
    );
    this.#running.add(running);
  }

  /** Waits for a value. Rejects with the error of the first task that fails before there is one. */
  until<T>(wanted: Promise<T>): Promise<T> {
    return Promise.race([wanted, this.#failure.promise]);
  }

  /** Stops all tasks and waits until they have stopped. A no-op for a stopped group. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    // A task may start another one while it stops.
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
