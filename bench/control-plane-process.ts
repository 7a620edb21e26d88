/** The control plane under test, as a process of its own, with its CPU time and memory. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");
const PATIENCE_MS = 120_000;
/** Clock ticks per second of /proc, on every Linux that Node runs on. */
const TICKS = 100;

export class ControlPlaneProcess implements AsyncDisposable {
  readonly #process: ChildProcess;
  #output = "";

  private constructor(folder: string, config: string, istiod: string | undefined) {
    const work = join(folder, "work");
    mkdirSync(work);
    const flags = ["discovery", "--configDir", config, "--registries=", "--grpcAddr", "127.0.0.1:0"];
    const closed = [
      "--secureGRPCAddr",
      "",
      "--httpAddr",
      "",
      "--httpsAddr",
      "",
      "--monitoringAddr",
      istiod === undefined ? "127.0.0.1:0" : "",
      "--ctrlz_port",
      "0",
    ];
    const bundled = existsSync(join(ROOT, "dist/pilot-discovery.cjs"));
    const ours = bundled
      ? [join(ROOT, "bin/pilot-discovery")]
      : [process.execPath, join(ROOT, "src/bin/pilot-discovery.ts")];
    const command = istiod === undefined ? ours : [istiod];
    const [program = "", ...first] = command;
    const env = { ...process.env, POD_NAMESPACE: "istio-system", ROOT_CA_DIR: join(folder, "ca") };
    this.#process = spawn(program, [...first, ...flags, ...closed], {
      cwd: work,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.#output += chunk.toString();
      });
    }
  }

  /** Runs on the configuration in that folder until it is disposed of: ours, or a real istiod. */
  static async start(folder: string, config: string, istiod?: string): Promise<ControlPlaneProcess> {
    const started = new ControlPlaneProcess(folder, config, istiod);
    const end = performance.now() + PATIENCE_MS;
    const ready = istiod === undefined ? "control plane is ready" : "All controller caches have been synced up";
    while (!started.#output.includes(ready) || started.address === "") {
      const failed = started.#process.exitCode !== null || performance.now() > end;
      if (failed) throw new Error(`the control plane did not start:\n${started.#output}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return started;
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** Of the plaintext port. */
  get address(): string {
    return /gRPC discovery service at (\S+)/.exec(this.#output)?.[1] ?? "";
  }

  /** How late timers of our event loop were since the last time somebody asked, 99 of 100; not a number for an istiod. */
  async loopDelayMs(): Promise<number> {
    const address = /monitoring service at (\S+)/.exec(this.#output)?.[1];
    if (address === undefined) return Number.NaN;
    const text = await (await fetch(`http://${address}/metrics`)).text();
    return Number(/^nodejs_eventloop_lag_p99_seconds (\S+)/m.exec(text)?.[1]) * 1000;
  }

  cpuSeconds(): number {
    const fields = readFileSync(`/proc/${this.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return (Number(fields[11]) + Number(fields[12])) / TICKS;
  }

  /** Private memory: what the process alone occupies. */
  privateMegabytes(): number {
    return Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${this.pid}/status`, "utf8"))?.[1]) / 1024;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.kill("SIGTERM");
    const cut = setTimeout(() => this.#process.kill("SIGKILL"), 10_000);
    await exited;
    clearTimeout(cut);
  }
}
