/**
 * Envoys that replace one another without losing a connection (hot restart). Each is an epoch:
 *
 *   starting --ready--> current --replaced--> draining --> gone
 *      '--not ready: killed; the current one never stopped serving
 *
 * The next epoch gets the listening sockets of the current one, and makes it drain and end once it serves itself. Two
 * things are lost in an attempt that fails, because Envoy gives them up early: the admin port of the current epoch, and
 * the right to try again, which is restored. The caller gets the admin port back by replacing the epoch with its like.
 */
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { type EnvoyProcess, exitStatus, type ProcessExit } from "./process.ts";

/** How to start what, as a certain epoch. */
export interface Launch {
  start(epoch: number): Promise<EnvoyProcess>;
  /** Called when the process of that epoch is gone. */
  cleanup(epoch: number): Promise<void>;
}

export interface EpochsOptions {
  /** True when that epoch serves. */
  readonly isReady: (epoch: number) => Promise<boolean>;
  /** After a start that failed. */
  readonly forgetStarting: () => Promise<void>;
  readonly log: Logger;
  /** For an epoch to become ready. */
  readonly readyTimeoutMs: number;
  /** Between two looks. */
  readonly checkEveryMs: number;
}

/** Envoys that finish what they have begun. */
export interface Draining {
  readonly what: string;
  readonly gone: Promise<void>;
}

interface Epoch {
  readonly number: number;
  readonly process: EnvoyProcess;
  readonly launch: Launch;
}

export class Epochs implements EnvoyProcess {
  /** Resolves when the epoch that serves is gone, and no other takes its place. */
  readonly exited: Promise<ProcessExit>;
  readonly #options: EpochsOptions;
  readonly #alive = new Set<Epoch>();
  /** What follows the ends of processes. */
  readonly #endings = new Set<Promise<void>>();
  readonly #end = Promise.withResolvers<ProcessExit>();
  #current: Epoch | undefined;
  #replacing: Promise<boolean> | undefined;
  #killed = false;

  private constructor(options: EpochsOptions) {
    this.#options = options;
    this.exited = this.#end.promise;
  }

  /** Starts the first epoch. */
  static async start(launch: Launch, options: EpochsOptions): Promise<Epochs> {
    const epochs = new Epochs(options);
    epochs.#current = await epochs.#start(launch, 0);
    return epochs;
  }

  get current(): number {
    return this.#current?.number ?? 0;
  }

  /**
   * What there is of epochs before the current one: Envoy ends them at once when a third one starts, however much of their
   * drain time is left. Undefined when there is nothing.
   */
  draining(): Draining | undefined {
    const old = [...this.#alive].filter((epoch) => epoch !== this.#current);
    if (old.length === 0) return undefined;
    const gone = Promise.all(old.map(({ process }) => process.exited)).then(() => undefined);
    return { what: `epoch ${old.map(({ number }) => number).join(", ")}`, gone };
  }

  /** Resolves when nothing is left of those that were killed or ended. */
  async gone(): Promise<void> {
    await Promise.all(this.#endings);
  }

  /** Ends all of them at once. */
  kill(): void {
    this.#killed = true;
    for (const { process } of this.#alive) process.kill();
  }

  /** Replaces the current epoch; false when the new one did not become ready and is gone again. One at a time. */
  async replace(launch: Launch): Promise<boolean> {
    while (this.#replacing !== undefined) await this.#replacing;
    const replacing = this.#replace(launch);
    this.#replacing = replacing;
    try {
      return await replacing;
    } finally {
      this.#replacing = undefined;
    }
  }

  async #replace(launch: Launch): Promise<boolean> {
    const { log, forgetStarting } = this.#options;
    if (this.#killed) throw new MeshError("HOT_RESTART_IMPOSSIBLE", "the proxy is ending");
    const number = this.current + 1;
    log.info(`Received new config, creating new Envoy epoch ${number}`);
    const next = await this.#start(launch, number);
    const before = this.#current;
    if (await this.#becomesReady(next)) {
      this.#current = next;
      log.info(`Epoch ${number} serves; epoch ${before?.number} drains`);
      return true;
    }
    log.warn(`Aborting epoch ${number}`);
    try {
      next.process.kill();
      await next.process.exited;
    } catch (thrown) {
      log.warn(`killing epoch ${number} caused an error ${errorText(thrown)}`);
    }
    await forgetStarting();
    return false;
  }

  async #start(launch: Launch, number: number): Promise<Epoch> {
    const epoch: Epoch = { number, launch, process: await launch.start(number) };
    this.#alive.add(epoch);
    if (this.#killed) epoch.process.kill();
    const ending = epoch.process.exited
      .then((exit) => this.#onExit(epoch, exit))
      .finally(() => this.#endings.delete(ending));
    this.#endings.add(ending);
    return epoch;
  }

  async #onExit(epoch: Epoch, exit: ProcessExit): Promise<void> {
    this.#alive.delete(epoch);
    await epoch.launch.cleanup(epoch.number);
    // Its successor may be about to take over.
    if (epoch === this.#current && !this.#killed) await this.#replacing?.catch(() => false);
    if (epoch !== this.#current) {
      this.#options.log.info(`Epoch ${epoch.number} ended with status ${exitStatus(exit)}`);
      return;
    }
    for (const { process } of this.#alive) process.kill();
    this.#end.resolve(exit);
  }

  async #becomesReady({ number, process }: Epoch): Promise<boolean> {
    const { isReady, readyTimeoutMs, checkEveryMs, log } = this.#options;
    const deadline = Date.now() + readyTimeoutMs;
    const pause = () => new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), checkEveryMs));
    while (Date.now() < deadline && !this.#killed) {
      if (await isReady(number)) return true;
      const exit = await Promise.race([process.exited, pause()]);
      if (exit === undefined) continue;
      log.error(`Epoch ${number} ended with status ${exitStatus(exit)} before it was ready`);
      return false;
    }
    if (!this.#killed) log.error(`Epoch ${number} is not ready after ${readyTimeoutMs} ms`);
    return false;
  }
}
