/** A control plane as a process of its own, on free ports, that reads an API server. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../fake-control-plane.ts";

const DISCOVERY = join(import.meta.dirname, "../../../src/bin/pilot-discovery.ts");

export interface ControlPlaneProcessOptions {
  readonly kubeConfig: string;
  /** Where it may write; each has a folder of its own in it. */
  readonly folder: string;
  /** Different for each replica. */
  readonly podName?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** A command instead of the sources. */
  readonly program?: string | undefined;
}

export class ControlPlaneProcess implements AsyncDisposable {
  readonly podName: string;
  readonly #child: ChildProcess;
  readonly #output: string[] = [];
  /** It has ended, and all that it printed is here. */
  #isOver = false;

  constructor({ kubeConfig, folder, podName = "istiod-1", env = {}, program }: ControlPlaneProcessOptions) {
    this.podName = podName;
    const listen = ["http", "grpc", "secureGRPC", "monitoring"].map((name) => `--${name}Addr=127.0.0.1:0`);
    const others = ["--httpsAddr=", "--ctrlz_port=0", "--shutdownDuration=1s"];
    const cwd = join(folder, podName);
    mkdirSync(cwd, { recursive: true });
    const [command, ...args] = program === undefined ? [process.execPath, DISCOVERY] : [program];
    this.#child = spawn(command, [...args, "discovery", "--kubeconfig", kubeConfig, ...others, ...listen], {
      cwd,
      env: { PATH: process.env.PATH, POD_NAME: podName, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (chunk) => this.#output.push(String(chunk)));
    }
    this.#child.once("close", () => {
      this.#isOver = true;
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  text(): string {
    return this.#output.join("");
  }

  /** The first group of a pattern that the log has at some time. */
  async logged(pattern: RegExp): Promise<string> {
    await eventually(
      () => `a line with ${pattern}; it printed\n${this.text()}`,
      () => {
        if (pattern.test(this.text())) return true;
        if (this.#isOver) throw new Error(`${this.podName} ended without a line with ${pattern}\n${this.text()}`);
        return false;
      },
    );
    return pattern.exec(this.text())?.[1] ?? "";
  }

  /** Where a part listens: `HTTP service`, `secure gRPC discovery service`, ... */
  address(what: string): Promise<string> {
    return this.logged(new RegExp(`starting ${what} at (\\S+)`));
  }

  async isReady(): Promise<boolean> {
    return (await fetch(`http://${await this.address("HTTP service")}/ready`)).ok;
  }

  ready(): Promise<string> {
    return this.logged(/control plane is ready/);
  }

  /** Without a word to anybody. */
  async kill(): Promise<void> {
    await this.#stop("SIGKILL");
  }

  async end(): Promise<void> {
    await this.#stop("SIGTERM");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }

  async #stop(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill(signal);
    await once(this.#child, "exit");
  }
}
