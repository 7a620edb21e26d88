import { sleep } from "#lib/async/sleep.ts";

/** Changes that were noticed but not looked at yet. */
export interface Changes {
  readonly paths: ReadonlySet<string>;
  /** Paths that were looked at before and are to be believed now. */
  readonly confirmed: ReadonlySet<string>;
  /** Something happened and no one knows where. */
  readonly rescan: boolean;
}

/** A write makes several events; they arrive within this time. */
const BURST_MS = 2;

/** Collects changes between two looks. */
export class PendingChanges implements Disposable {
  #paths = new Set<string>();
  #confirmed = new Set<string>();
  #rescan = false;
  #wake: () => void = () => undefined;
  readonly #timers = new Map<string, NodeJS.Timeout>();

  /** Something happened at a path, or somewhere. */
  touch(path?: string): void {
    if (path === undefined) this.#rescan = true;
    else this.#paths.add(path);
    this.#wake();
  }

  /** Looks at a path again after a while, and believes what is there then. */
  confirmLater(path: string, delayMs: number): void {
    clearTimeout(this.#timers.get(path));
    const timer = setTimeout(() => {
      this.#timers.delete(path);
      this.#confirmed.add(path);
      this.touch(path);
    }, delayMs);
    this.#timers.set(path, timer);
  }

  /** Waits for changes and takes them; after `maxMs` without any, everything is to be looked at. */
  async take(maxMs: number, signal: AbortSignal): Promise<Changes> {
    if (this.#paths.size === 0 && !this.#rescan) this.#rescan = !(await this.#woken(maxMs, signal));
    await sleep(BURST_MS, signal);
    const taken = { paths: this.#paths, confirmed: this.#confirmed, rescan: this.#rescan };
    this.#paths = new Set();
    this.#confirmed = new Set();
    this.#rescan = false;
    return taken;
  }

  [Symbol.dispose](): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  async #woken(maxMs: number, signal: AbortSignal): Promise<boolean> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await sleep(maxMs, AbortSignal.any([signal, woken.signal]));
    return woken.signal.aborted;
  }
}
