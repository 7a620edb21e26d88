/** Whether the workload is ready, as its probe says, for those who tell the control plane. */
import { sleep } from "#lib/async/sleep.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import type { ReadinessProbe } from "./readiness-probe.ts";

export type HealthState = { readonly healthy: true } | { readonly healthy: false; readonly message: string };

export interface WorkloadHealth {
  /** Undefined until the first state is certain. */
  readonly current: HealthState | undefined;
  /** Called at each change; gives the way to stop that. */
  subscribe(listener: () => void): () => void;
}

export interface HealthWatchOptions extends Omit<ReadinessProbe, "method" | "timeoutMs"> {
  /** Rejects, with the reason, when the workload is not ready. */
  readonly probe: () => Promise<void>;
  readonly log: Logger;
}

export class HealthWatch implements WorkloadHealth {
  readonly #options: HealthWatchOptions;
  readonly #listeners = new Set<() => void>();
  #current: HealthState | undefined;
  #successes = 0;
  #failures = 0;

  constructor(options: HealthWatchOptions) {
    this.#options = options;
  }

  get current(): HealthState | undefined {
    return this.#current;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Probes until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { initialDelayMs, periodMs, log } = this.#options;
    log.info(`starting health check in ${initialDelayMs} ms`);
    await sleep(initialDelayMs, signal);
    while (!signal.aborted) {
      const startedAt = performance.now();
      await this.#check();
      await sleep(Math.max(0, periodMs - (performance.now() - startedAt)), signal);
    }
  }

  async #check(): Promise<void> {
    const { probe, successThreshold, failureThreshold, log } = this.#options;
    try {
      await probe();
    } catch (thrown) {
      const message = errorText(thrown);
      log.debug(`probe completed with unhealthy status: ${message}`);
      this.#successes = 0;
      if (++this.#failures < failureThreshold || this.#current?.healthy === false) return;
      log.info(`failure threshold hit, marking as unhealthy: ${message}`);
      this.#change({ healthy: false, message });
      return;
    }
    log.debug("probe completed with healthy status");
    this.#failures = 0;
    if (++this.#successes < successThreshold || this.#current?.healthy === true) return;
    log.info("success threshold hit, marking as healthy");
    this.#change({ healthy: true });
  }

  #change(state: HealthState): void {
    this.#current = state;
    this.#successes = 0;
    this.#failures = 0;
    for (const listener of this.#listeners) listener();
  }
}
