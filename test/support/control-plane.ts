/** A whole control plane in the process of a test, on free ports, with the flags and the environment of the real command. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { ControlPlane } from "#control-plane/control-plane.ts";
import { flagDefaults, parseDiscoveryConfig } from "#control-plane/settings/config.ts";
import { addFlags, flagsOf } from "#control-plane/settings/flags.ts";
import { createLogger } from "#lib/log/log.ts";
import type { KubernetesApi } from "../../src/lib/kubernetes/api-client.ts";
import { eventually } from "./fake-control-plane.ts";

export interface ControlPlaneOptions {
  /** Configuration by file name. */
  readonly files?: Readonly<Record<string, string>>;
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Instead of none. */
  readonly cluster?: KubernetesApi;
}

const FREE = [
  "--ctrlz_port=0",
  ...["httpAddr", "grpcAddr", "secureGRPCAddr", "monitoringAddr"].map((name) => `--${name}=127.0.0.1:0`),
];

/** The slowest of what is waited for tries again in growing steps. */
const LOGGED_MS = 180_000;

export class TestControlPlane implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "test-control-plane-"));
  readonly lines: string[] = [];
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  #failure: unknown;

  constructor({ files = {}, flags = [], env = {}, cluster }: ControlPlaneOptions = {}) {
    mkdirSync(join(this.folder, "config"));
    for (const [name, text] of Object.entries(files)) this.write(name, text);
    const all = { ROOT_CA_DIR: join(this.folder, "ca"), ...env };
    const defaults = flagDefaults(all);
    const command = new Command().exitOverride();
    addFlags(command, defaults);
    const fromFiles = ["--registries=", "--configDir", join(this.folder, "config")];
    const own = ["--httpsAddr=", "--shutdownDuration=1s", ...(cluster === undefined ? fromFiles : [])];
    command.parse([...own, ...FREE, ...flags], { from: "user" });
    const { config, problems } = parseDiscoveryConfig(flagsOf(command, defaults), all);
    assert.deepEqual(problems, []);
    const log = createLogger({ write: (line) => this.lines.push(line), levels: config.log.levels });
    this.#running = new ControlPlane(config, log, cluster).run(this.#stopping.signal).catch((thrown: unknown) => {
      this.#failure = thrown ?? new Error("ended");
    });
  }

  /** Writes a file of the configuration. */
  write(name: string, text: string | Uint8Array): void {
    writeFileSync(join(this.folder, "config", name), text);
  }

  /** Waits for a line of the log; the first group of the pattern. */
  async logged(pattern: RegExp): Promise<string> {
    const found = () => this.lines.map((line) => pattern.exec(line)).find((match) => match !== null);
    await eventually(
      () => `a line with ${pattern}; there are\n${this.lines.join("")}`,
      () => {
        if (found() !== undefined) return true;
        if (this.#failure !== undefined) throw this.#failure;
        return false;
      },
      LOGGED_MS,
    );
    return found()?.[1] ?? "";
  }

  /** Where a part listens: `HTTP service`, `gRPC discovery service`, `monitoring service`, ... */
  address(what: string): Promise<string> {
    return this.logged(new RegExp(`starting ${what} at (\\S+)`));
  }

  ready(): Promise<string> {
    return this.logged(/control plane is ready/);
  }

  /** Begins to stop; resolves when it has. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
