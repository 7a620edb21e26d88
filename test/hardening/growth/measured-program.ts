/** A program as a child process whose CPU time, memory and longest turn of the event loop are measured from outside. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../../support/fake-control-plane.ts";

const PROBE = join(import.meta.dirname, "probe.ts");
const SAMPLE_MS = 20;
/** The program is ended when it is silent for longer. */
const HANG_MS = 20_000;

export interface Cost {
  readonly cpuMs: number;
  /** CPU time of the longest turn of the event loop. */
  readonly longestMs: number;
  /** Highest RssAnon. */
  readonly peakBytes: number;
}

interface Answer {
  readonly cpuMs: number;
  readonly longestMs: number;
}

export interface ProgramOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Command that runs the program, such as `unshare --mount`. It must end with the program in its place (`exec`). */
  readonly through?: readonly string[];
}

export class MeasuredProgram implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #printed: string[] = [];

  /** Runs a TypeScript file. */
  constructor(file: string, args: readonly string[], { cwd, env = {}, through = [] }: ProgramOptions) {
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    const [program = "", ...rest] = [...through, process.execPath, `--import=${PROBE}`, file, ...args];
    this.#child = spawn(program, rest, {
      cwd,
      env: { PATH, NODE_COMPILE_CACHE, ...env },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      serialization: "advanced",
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on("data", (chunk) => this.#printed.push(String(chunk)));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get text(): string {
    return this.#printed.join("");
  }

  /** The first group of the pattern, as soon as the program has printed it. */
  async printed(pattern: RegExp): Promise<string> {
    await eventually(
      () => `${pattern} in\n${this.text}`,
      () => {
        if (this.hasEnded) throw new Error(`the program ended:\n${this.text}`);
        return pattern.test(this.text);
      },
      120_000,
    );
    return pattern.exec(this.text)?.[1] ?? "";
  }

  /** What it costs the program to serve `work`. */
  async cost(work: () => Promise<void>): Promise<Cost> {
    const start = await this.#ask();
    let peakBytes = this.anonymousBytes();
    const sampling = setInterval(() => {
      peakBytes = Math.max(peakBytes, this.anonymousBytes());
    }, SAMPLE_MS);
    try {
      await work();
      const end = await this.#ask();
      return { cpuMs: end.cpuMs - start.cpuMs, longestMs: end.longestMs, peakBytes };
    } finally {
      clearInterval(sampling);
    }
  }

  /** Sends a message to the program. Resolves when the program sends `answer`. */
  async tell(message: string | object, answer: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const ended = () => reject(new Error(`the program ended:\n${this.text.slice(-4_000)}`));
    const onMessage = (said: unknown) => said === answer && resolve();
    this.#child.on("message", onMessage).once("exit", ended);
    this.#child.send(message);
    const watch = setTimeout(() => this.#child.kill("SIGKILL"), HANG_MS);
    await promise.finally(() => {
      clearTimeout(watch);
      this.#child.off("message", onMessage).off("exit", ended);
    });
  }

  /** RssAnon; 0 when the program has ended. */
  anonymousBytes(): number {
    try {
      const status = readFileSync(`/proc/${this.pid}/status`, "utf8");
      return 1024 * Number(/^RssAnon:\s+(\d+)/m.exec(status)?.[1] ?? 0);
    } catch {
      return 0;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.hasEnded) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "exit");
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async #ask(): Promise<Answer> {
    if (this.hasEnded || !this.#child.connected) throw new Error(`the program ended:\n${this.text.slice(-4_000)}`);
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const ended = () => reject(new Error(`the program ended:\n${this.text.slice(-4_000)}`));
    this.#child.once("message", (answer: Answer) => resolve(answer)).once("exit", ended);
    this.#child.send("measure");
    return promise.finally(() => this.#child.off("exit", ended));
  }
}
