/** The control plane under test, as a process of its own, with its CPU time and memory. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CA_FILE_NAMES } from "#ca/keys/ca-folder.ts";
import { selfSignedCa } from "#ca/keys/self-signed.ts";
import type { Callers } from "./callers.ts";

/** What a proxy needs to come over TLS. */
export interface Access {
  /** PEM of the roots that the control plane's certificate is of. */
  readonly rootFile: string;
  readonly callers: Callers;
}

const ROOT = join(import.meta.dirname, "..");
const DAY_MS = 86_400_000;
const PATIENCE_MS = 120_000;
/** Clock ticks per second of /proc, on every Linux that Node runs on. */
const TICKS = 100;

export interface PlaneOptions {
  /** A real one, in place of ours. */
  readonly istiod?: string | undefined;
  /** Proxies come over TLS, with tokens. */
  readonly callers?: Callers | undefined;
}

export class ControlPlaneProcess implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #folder: string;
  readonly #callers: Callers | undefined;
  #output = "";

  private constructor(folder: string, config: string, { istiod, callers }: PlaneOptions) {
    this.#folder = folder;
    this.#callers = callers;
    const work = join(folder, "work");
    mkdirSync(work);
    const flags = ["discovery", "--configDir", config, "--registries=", "--grpcAddr", "127.0.0.1:0"];
    const closed = [
      "--secureGRPCAddr",
      callers === undefined ? "" : "127.0.0.1:0",
      "--httpAddr",
      istiod === undefined ? "127.0.0.1:0" : "",
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
    const env = {
      ...process.env,
      POD_NAMESPACE: "istio-system",
      ROOT_CA_DIR: join(folder, "ca"),
      ...(callers !== undefined && { JWT_RULE: callers.rule, ISTIOD_CUSTOM_HOST: "localhost" }),
    };
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

  /** Runs on the configuration in that folder until it is disposed of. */
  static async start(folder: string, config: string, options: PlaneOptions = {}): Promise<ControlPlaneProcess> {
    const { istiod, callers } = options;
    // An istiod keeps one that it makes itself to itself.
    if (callers !== undefined) await prepareCa(join(folder, "ca"));
    const started = new ControlPlaneProcess(folder, config, options);
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

  /** Where proxies come. */
  get address(): string {
    const secure = /secure gRPC discovery service at \S+?:(\d+)$/m.exec(this.#output)?.[1];
    if (this.#callers !== undefined) return secure === undefined ? "" : `localhost:${secure}`;
    return /gRPC discovery service at (\S+)/.exec(this.#output)?.[1] ?? "";
  }

  /** How proxies prove who they are; undefined in plain text. */
  get access(): Access | undefined {
    if (this.#callers === undefined) return undefined;
    const rootFile = join(this.#folder, "ca/root-cert.pem");
    return { rootFile, callers: this.#callers };
  }

  /** How late timers of our event loop were since the last time somebody asked, 99 of 100; not a number for an istiod. */
  async loopDelayMs(): Promise<number> {
    const address = /monitoring service at (\S+)/.exec(this.#output)?.[1];
    if (address === undefined) return Number.NaN;
    const text = await (await fetch(`http://${address}/metrics`)).text();
    return Number(/^nodejs_eventloop_lag_p99_seconds (\S+)/m.exec(text)?.[1]) * 1000;
  }

  /** What a proxy was sent lately; of ours alone. */
  async pushes(proxyId: string): Promise<readonly { readonly type: string; readonly answeredAfterMs?: number }[]> {
    const address = /HTTP service at (\S+)/.exec(this.#output)?.[1];
    const answer = await fetch(`http://${address}/debug/pushes?proxyID=${proxyId}`);
    const { changes } = Object(await answer.json());
    return changes.flatMap(({ pushes }: { pushes: object[] }) => pushes);
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

/** The files of a CA, as people bring their own. */
async function prepareCa(folder: string): Promise<void> {
  const options = { trustDomain: "cluster.local", lifetimeMs: DAY_MS, keyKind: { rsaBits: 2048 }, now: Date.now() };
  const made = await selfSignedCa(options);
  const files = { ...made, chainPem: made.chainPem || made.certificatePem };
  mkdirSync(folder);
  for (const [field, name] of Object.entries(CA_FILE_NAMES)) {
    writeFileSync(join(folder, name), files[field as keyof typeof CA_FILE_NAMES], { mode: 0o600 });
  }
}
