/**
 * One process that is kept alive: started, watched, started again with growing pauses when it ends.
 *
 *   waiting --> running --(ends)--> pausing --> running ...
 *      any --(signal aborts)--> stopped
 */
import { type ChildProcess, spawn } from "node:child_process";
import { chown, type FileHandle, open } from "node:fs/promises";
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import { errorText } from "#lib/mesh-error.ts";
import { signalProcess } from "../host/processes.ts";
import type { ProcessPlan } from "../plan/process.ts";

export interface UnitStatus {
  readonly state: "waiting" | "running" | "pausing" | "stopped";
  readonly pid: number | undefined;
  /** Starts after the first one. */
  readonly restarts: number;
  /** How it last ended; undefined when it never did. */
  readonly lastExit: string | undefined;
  /** Ends in a row of which each came before the process had been up for a while. */
  readonly quickExits: number;
}

export interface UnitOptions {
  readonly plan: ProcessPlan;
  /** Time between the request to end and the end by force. */
  readonly graceMs: number;
  readonly onChange: (status: UnitStatus) => void;
  /** Runs beside each life of the process; its signal aborts when that life ends. */
  readonly beside?: ((signal: AbortSignal) => Promise<void>) | undefined;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;
/** A process that lived this long has recovered: its next end is taken as the first. */
const HEALTHY_MS = 10_000;

export class Unit {
  readonly #options: UnitOptions;
  readonly #backoff = new Backoff({ initialMs: FIRST_PAUSE_MS, maxMs: LONGEST_PAUSE_MS });
  #status: UnitStatus = { state: "waiting", pid: undefined, restarts: 0, lastExit: undefined, quickExits: 0 };

  constructor(options: UnitOptions) {
    this.#options = options;
  }

  get status(): UnitStatus {
    return this.#status;
  }

  /** Keeps the process alive until the signal aborts; resolves when the process has ended. */
  async run(signal: AbortSignal): Promise<void> {
    for (let starts = 0; !signal.aborted; starts++) {
      const startedAt = Date.now();
      const lastExit = await this.#live(starts, signal);
      if (signal.aborted) break;
      const healthy = Date.now() - startedAt >= HEALTHY_MS;
      if (healthy) this.#backoff.reset();
      const quickExits = healthy ? 1 : this.#status.quickExits + 1;
      this.#set({ state: "pausing", pid: undefined, lastExit, quickExits });
      await sleep(this.#backoff.next(), signal);
    }
    this.#set({ state: "stopped", pid: undefined });
  }

  /** One life of the process; resolves to the way it ended. */
  async #live(restarts: number, signal: AbortSignal): Promise<string> {
    const life = new AbortController();
    try {
      const { child, ended } = await startProcess(this.#options.plan);
      const stop = () => this.#stop(child, ended);
      signal.addEventListener("abort", stop, { once: true });
      if (signal.aborted) stop();
      this.#set({ state: "running", pid: child.pid, restarts });
      const beside = this.#options.beside?.(life.signal);
      const how = await ended;
      signal.removeEventListener("abort", stop);
      life.abort();
      // What it started and left behind holds its ports: the next life needs them.
      if (child.pid !== undefined) signalProcess(-child.pid, "SIGKILL");
      await beside;
      return how;
    } catch (error) {
      life.abort();
      return `cannot be started: ${errorText(error)}`;
    }
  }

  #stop(child: ChildProcess, ended: Promise<string>): void {
    const { pid } = child;
    if (pid === undefined) return;
    signalProcess(pid, "SIGTERM");
    const insist = setTimeout(() => signalProcess(-pid, "SIGKILL"), this.#options.graceMs);
    void ended.finally(() => clearTimeout(insist));
  }

  #set(change: Partial<UnitStatus>): void {
    this.#status = { ...this.#status, ...change };
    this.#options.onChange(this.#status);
  }
}

interface Started {
  readonly child: ChildProcess;
  /** How it ended. */
  readonly ended: Promise<string>;
}

/** Starts a process in a session of its own, so that a Ctrl-C on the terminal does not reach it. */
async function startProcess({ argv, env, cwd, log, account }: ProcessPlan): Promise<Started> {
  const [program = "", ...args] = argv;
  const file = await openLog(log, account.uid);
  try {
    const child = spawn(program, args, { env: { ...env }, cwd, stdio: ["ignore", file.fd, file.fd], detached: true });
    return { child, ended: exitOf(child) };
  } finally {
    await file.close();
  }
}

async function openLog(path: string, owner: number): Promise<FileHandle> {
  const file = await open(path, "a", 0o600);
  await chown(path, owner, owner);
  return file;
}

function exitOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(`cannot be started: ${errorText(error)}`));
    child.once("exit", (code, signal) =>
      resolve(signal === null ? `exited with code ${code}` : `was killed by ${signal}`),
    );
  });
}
