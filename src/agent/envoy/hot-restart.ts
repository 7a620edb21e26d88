/**
 * When the running Envoy is replaced by another: when somebody asks for it (SIGHUP), or when its program or what its
 * bootstrap is made of changed. A replacement that Envoy itself would refuse is not started; one that comes while an Envoy
 * drains waits for its end, and gives way to a newer one; one that does not become ready is given up, and the launch before
 * it is repeated until it serves again.
 */
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import type { Draining, Launch } from "./epochs.ts";

/** A launch that can be compared and tried. */
export interface PlannedLaunch extends Launch {
  /** Equal for launches that would make the same process. */
  readonly fingerprint: string;
  /** Envoys of the same version can replace one another. */
  readonly hotRestartVersion: string;
  /** What speaks against its taking over from another; undefined when nothing does. */
  problem(running: PlannedLaunch): Promise<string | undefined>;
}

export interface HotRestartOptions {
  readonly first: PlannedLaunch;
  readonly plan: () => Promise<PlannedLaunch>;
  readonly replace: (launch: Launch) => Promise<boolean>;
  /** What a replacement would cut off; undefined when there is nothing. */
  readonly draining: () => Draining | undefined;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

const REPEAT_MS = 5_000;
const MAX_REPEAT_MS = 60_000;

export class HotRestart {
  readonly #options: HotRestartOptions;
  /** What serves, or did last. */
  #launched: PlannedLaunch;
  #wanted: "asked" | "changed" | undefined;
  #working: Promise<void> | undefined;
  /** Aborted when something newer is wanted than what is being repeated. */
  #newer = new AbortController();

  constructor(options: HotRestartOptions) {
    this.#options = options;
    this.#launched = options.first;
  }

  /** Asks for a replacement: in any case, or if there is something new. Requests that come meanwhile become one. */
  request(why: "asked" | "changed"): void {
    if (this.#options.signal.aborted) return;
    if (this.#wanted !== "asked") this.#wanted = why;
    this.#newer.abort();
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
    });
  }

  /** Resolves when nothing is being replaced. */
  async idle(): Promise<void> {
    await this.#working;
  }

  async #work(): Promise<void> {
    const { signal, log } = this.#options;
    while (this.#wanted !== undefined && !signal.aborted) {
      const why = this.#wanted;
      this.#wanted = undefined;
      this.#newer = new AbortController();
      try {
        await this.#replace(why);
      } catch (thrown) {
        log.error(`Envoy is not replaced: ${errorText(thrown)}`);
      }
    }
  }

  async #replace(why: "asked" | "changed"): Promise<void> {
    const { plan, replace, log } = this.#options;
    const next = await plan();
    if (why === "changed" && next.fingerprint === this.#launched.fingerprint) return;
    const problem = await next.problem(this.#launched);
    if (problem !== undefined) {
      log.error(`Envoy is not replaced: ${problem}`);
      return;
    }
    if (!(await this.#mayStart(why))) return;
    if (await replace(next)) {
      this.#launched = next;
      return;
    }
    log.error(
      "The new Envoy did not become ready: the old one goes on serving, and is restarted to have its admin port",
    );
    await this.#repeat();
  }

  /** Waits until nothing drains. False when something newer is wanted, or the end. */
  async #mayStart(why: "asked" | "changed"): Promise<boolean> {
    const { draining, signal, log } = this.#options;
    const old = draining();
    if (old === undefined) return true;
    log.info(`Envoy is replaced when ${old.what} has drained`);
    const left = Promise.withResolvers<void>();
    const until = AbortSignal.any([signal, this.#newer.signal]);
    until.addEventListener("abort", () => left.resolve(), { once: true });
    if (!until.aborted) await Promise.race([old.gone, left.promise]);
    if (!until.aborted) return true;
    if (why === "asked") this.#wanted = why; // a change that turns out to be none must not swallow it
    return false;
  }

  async #repeat(): Promise<void> {
    const { replace, signal } = this.#options;
    const backoff = new Backoff({ initialMs: REPEAT_MS, maxMs: MAX_REPEAT_MS });
    const until = AbortSignal.any([signal, this.#newer.signal]);
    while (!until.aborted && !(await replace(this.#launched))) await sleep(backoff.next(), until);
  }
}
