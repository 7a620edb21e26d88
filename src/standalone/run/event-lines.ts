import type { Logger } from "#lib/log/log.ts";

/** Lines for people about what happens in a mesh: kept in the runner's log, and passed to whoever listens. */
export class EventLines {
  readonly #log: Logger;
  readonly #listeners = new Set<(line: string) => void>();

  constructor(log: Logger) {
    this.#log = log;
  }

  add(line: string): void {
    this.#log.info(line);
    for (const listener of this.#listeners) listener(line);
  }

  /** Hears all lines until it is disposed of. */
  listen(listener: (line: string) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }
}
