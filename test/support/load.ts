/** Requests without a pause from inside a workload, seen one by one as their answers come. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { RunningMesh } from "./mesh-run.ts";

export interface LoadAnswer {
  /** 0 when there was none. */
  readonly status: number;
  /** One line. */
  readonly body: string;
  readonly at: number;
}

const MIZZEN = join(import.meta.dirname, "../../bin/mizzen");

export class Load implements AsyncDisposable {
  readonly answers: LoadAnswer[] = [];
  readonly #child;
  readonly #ended;

  /** Calls the address from the workload until it is disposed of. */
  constructor(mesh: RunningMesh, workload: string, url: string) {
    // curl repeats the address by itself over one connection and opens a new one when that breaks.
    const curl = ["curl", "-sSN", "-m", "10", "-w", "\\n%{http_code}\\n", `${url}?[1-1000000]`];
    this.#child = spawn(MIZZEN, ["exec", "--state", mesh.stateFolder, workload, "--", ...curl], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    this.#ended = new Promise((resolve) => this.#child.once("close", resolve));
    let body = "";
    createInterface(this.#child.stdout).on("line", (line) => {
      if (/^\d{3}$/.test(line)) {
        this.answers.push({ status: Number(line), body, at: performance.now() });
        body = "";
      } else body += line;
    });
  }

  get failures(): readonly LoadAnswer[] {
    return this.answers.filter(({ status }) => status !== 200);
  }

  /** The first answer after a time for which the condition holds. */
  async first(since: number, condition: (answer: LoadAnswer) => boolean): Promise<LoadAnswer> {
    for (let waited = 0; waited < 60_000; waited += 10) {
      const found = this.answers.find((answer) => answer.at >= since && condition(answer));
      if (found !== undefined) return found;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error(`no such answer among ${this.answers.length}; the last was ${JSON.stringify(this.answers.at(-1))}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#ended;
  }
}
