/**
 * One process that is kept alive: started, watched, started again with growing pauses when it ends. A job is not started
 * again once it has done its work, or has failed for good.
 *
 *   waiting --> running --(ends)--> pausing --> running ...
 *                  \--(job ends)--> done
 *      any --(signal aborts)--> stopped
 */
import { type ChildProcess, spawn } from "node:child_process";
import { type FileHandle, open } from "node:fs/promises";
import { constants } from "node:os";
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import { errorText } from "#lib/mesh-error.ts";
import { keepPlace } from "../host/keepers.ts";
import { insidePid, signalProcess } from "../host/processes.ts";
import { own } from "../host/write-files.ts";
import type { RestartPolicy } from "../mesh/mesh.ts";
import type { ProcessPlan } from "../plan/process.ts";

export interface UnitStatus {
  readonly state: "waiting" | "running" | "pausing" | "done" | "stopped";
  readonly pid: number | undefined;
  /** Starts after the first one. */
  readonly restarts: number;
  /** How it last ended; undefined when it never did. */
  readonly lastExit: string | undefined;
  /** As a shell would give it: 128 and the signal's number for a process that was killed. */
  readonly exitCode: number | undefined;
  /** Ends in a row of which each came before the process had been up for a while. */
  readonly quickExits: number;
}

export interface UnitOptions {
  readonly plan: ProcessPlan;
  readonly restart?: RestartPolicy;
  /** Time between the request to end and the end by force. */
  readonly graceMs: number;
  readonly onChange: (status: UnitStatus) => void;
  /** Called when a process did not end when it was asked to, and is ended by force. */
  readonly onForce?: (() => void) | undefined;
  /** Says more about an end than the process could; undefined when there is no more to say. */
  readonly explain?: (() => Promise<string | undefined>) | undefined;
  /** Runs beside each life of the process; its signal aborts when that life ends. */
  readonly beside?: ((signal: AbortSignal) => Promise<void>) | undefined;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;
/** A process that lived this long has recovered: its next end is taken as the first. */
export const HEALTHY_MS = 10_000;
/** A process that is not inside of its place by then never will be. */
const ENTERING_POLLS = 1000;
const ENTERING_POLL_MS = 2;
/** A job that failed this often in a row has failed. */
const MAX_JOB_FAILURES = 6;

export class Unit {
  readonly #options: UnitOptions;
  readonly #backoff = new Backoff({ initialMs: FIRST_PAUSE_MS, maxMs: LONGEST_PAUSE_MS });
  #child: ChildProcess | undefined;
  #status: UnitStatus = {
    state: "waiting",
    pid: undefined,
    restarts: 0,
    lastExit: undefined,
    exitCode: undefined,
    quickExits: 0,
  };

  constructor(options: UnitOptions) {
    this.#options = options;
  }

  get status(): UnitStatus {
    return this.#status;
  }

  /** Keeps the process alive until the signal aborts or a job is done; resolves when the process has ended. */
  async run(signal: AbortSignal): Promise<void> {
    for (let starts = 0; !signal.aborted; starts++) {
      const startedAt = Date.now();
      const { text, code } = await this.#live(starts, signal);
      if (signal.aborted) break;
      const healthy = Date.now() - startedAt >= HEALTHY_MS;
      if (healthy) this.#backoff.reset();
      const quickExits = healthy ? 1 : this.#status.quickExits + 1;
      const ended = { pid: undefined, lastExit: text, exitCode: code, quickExits };
      if (this.#isDone(code, starts + 1)) {
        this.#set({ state: "done", ...ended });
        return;
      }
      this.#set({ state: "pausing", ...ended });
      await sleep(this.#backoff.next(), signal);
    }
    this.#set({ state: "stopped", pid: undefined });
  }

  /** Ends the present life of the process: it is asked to, and forced to when it does not. */
  end(): void {
    if (this.#child !== undefined) this.#stop(this.#child);
  }

  #isDone(code: number, lives: number): boolean {
    const { restart = "always" } = this.#options;
    return restart === "never" || (restart === "onFailure" && (code === 0 || lives >= MAX_JOB_FAILURES));
  }

  /** One life of the process; resolves to the way it ended. */
  async #live(restarts: number, signal: AbortSignal): Promise<Exit> {
    const life = new AbortController();
    try {
      const { child, ended } = await startProcess(this.#options.plan);
      this.#child = child;
      const stop = () => this.#stop(child);
      signal.addEventListener("abort", stop, { once: true });
      if (signal.aborted) stop();
      this.#set({ state: "running", pid: await this.#pidOf(child), restarts });
      const beside = this.#options.beside?.(life.signal);
      const how = await ended;
      const why = await this.#options.explain?.();
      this.#child = undefined;
      signal.removeEventListener("abort", stop);
      life.abort();
      // What it started and left behind holds its ports: the next life needs them.
      if (child.pid !== undefined) signalProcess(-child.pid, "SIGKILL");
      await beside;
      return why === undefined ? how : { ...how, text: why };
    } catch (error) {
      life.abort();
      return notStarted(error);
    }
  }

  /** Of the process itself, which may be a child of the one that entered its place. */
  async #pidOf(child: ChildProcess): Promise<number | undefined> {
    if (this.#options.plan.place === undefined) return child.pid;
    const never = new AbortController().signal;
    for (let i = 0; i < ENTERING_POLLS && !hasEnded(child); i++) {
      const pid = await insidePid(child.pid ?? 0);
      if (pid !== undefined) return pid;
      await sleep(ENTERING_POLL_MS, never);
    }
    return child.pid;
  }

  #stop(child: ChildProcess): void {
    const { pid } = child;
    if (pid === undefined || hasEnded(child)) return;
    void this.#pidOf(child).then((own) => signalProcess(own ?? pid, "SIGTERM"));
    const insist = setTimeout(() => {
      this.#options.onForce?.();
      void this.#pidOf(child).then((own) => signalProcess(own ?? pid, "SIGKILL"));
    }, this.#options.graceMs);
    child.once("exit", () => clearTimeout(insist));
  }

  #set(change: Partial<UnitStatus>): void {
    this.#status = { ...this.#status, ...change };
    this.#options.onChange(this.#status);
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

/** How a process ended. */
interface Exit {
  readonly text: string;
  readonly code: number;
}

/** As a shell answers for a command that it cannot run. */
const CANNOT_RUN = 126;

function notStarted(error: unknown): Exit {
  return { text: `cannot be started: ${errorText(error)}`, code: CANNOT_RUN };
}

interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Exit>;
}

/** Starts a process in a session of its own, so that a Ctrl-C on the terminal does not reach it. */
async function startProcess({ argv, place, env, cwd, log, account }: ProcessPlan): Promise<Started> {
  const [program = "", ...args] = argv;
  if (place !== undefined) await keepPlace(place);
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
  await own(path, owner);
  return file;
}

function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(notStarted(error)));
    child.once("exit", (code, signal) =>
      resolve(
        signal === null
          ? { text: `exited with code ${code}`, code: code ?? 1 }
          : { text: `was killed by ${signal}`, code: 128 + constants.signals[signal] },
      ),
    );
  });
}
