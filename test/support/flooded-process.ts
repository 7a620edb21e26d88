/** A program under attack in a process of its own, so that its memory and its event loop are measured apart from the attacker's. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { eventually } from "./fake-control-plane.ts";

const START_MS = 60_000;
const MEGABYTE = 1024 * 1024;
/** Memory is used as by the real programs: see bin/. */
const FLAGS = ["--max-semi-space-size=4", "--no-memory-reducer"];
const MEMORY = { MALLOC_MMAP_THRESHOLD_: "32768", MALLOC_ARENA_MAX: "2" };

export interface FloodedProgram {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** In its output, when it can be attacked. */
  readonly ready: RegExp;
}

export class FloodedProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  #output = "";

  private constructor({ args, cwd, env }: FloodedProgram) {
    this.#child = spawn(process.execPath, [...FLAGS, ...args], {
      cwd,
      env: { ...process.env, ...MEMORY, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on("data", (chunk: Buffer) => {
        this.#output += chunk.toString();
      });
  }

  static async start(program: FloodedProgram): Promise<FloodedProcess> {
    const started = new FloodedProcess(program);
    await eventually(
      () => `the program to be ready; it wrote\n${started.#output}`,
      () => {
        if (started.#child.exitCode !== null) throw new Error(`the program ended:\n${started.#output}`);
        return program.ready.test(started.#output);
      },
      START_MS,
    );
    return started;
  }

  get output(): string {
    return this.#output;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** The port in the first group of a pattern of its output. */
  port(pattern: RegExp): number {
    return Number(pattern.exec(this.#output)?.[1]);
  }

  /** Memory of the process alone. */
  privateMegabytes(): number {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, "utf8");
    return (Number(/RssAnon:\s+(\d+)/.exec(status)?.[1]) * 1024) / MEGABYTE;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.hasEnded) return;
    const exited = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill("SIGKILL");
    await exited;
  }
}
