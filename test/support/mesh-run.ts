/**
 * A one-machine mesh for tests, started by the commands that people use. Each has a name, a state folder and free host
 * ports of its own, so that several can be up at the same time; all of it is gone at the end of the block.
 *
 *     await using mesh = await upMesh("samples/httpbin");
 *     const { body } = await mesh.curl("sleep", "http://httpbin:8000/headers");
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { accessSync, constants } from "node:fs";
import { chmod, cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import type { MemberStatus, MeshStatus } from "#standalone/run/status.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** The command under test; one of another build can be tried instead. */
export const MIZZEN = process.env.MIZZEN ?? join(ROOT, "bin/mizzen");

export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Answer {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface UpMeshOptions {
  /** More arguments of `mizzen up`. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** What of a mesh can be killed: a process of a member, the control plane, or the runner itself. */
export type Part = { readonly member: string; readonly process: "app" | "agent" | "envoy" } | "istiod" | "runner";

/** Why no mesh can run here, for `test(name, { skip: meshUnavailable() }, ...)`; false when one can. */
export function meshUnavailable(): string | false {
  if (process.getuid?.() !== 0) return "needs root";
  for (const [file, reason] of [
    [".cache/envoy", "needs Envoy: run `make setup`"],
    ["dist/mizzen.cjs", "needs bundles: run `make build`"],
    ["dist/pilot-agent.cjs", "needs bundles: run `make build`"],
    ["dist/pilot-discovery.cjs", "needs bundles: run `make build`"],
  ] as const) {
    try {
      accessSync(join(ROOT, file), constants.R_OK);
    } catch {
      return reason;
    }
  }
  return false;
}

/** Runs `mizzen` to its end. */
export async function mizzen(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Finished> {
  const child = spawn(MIZZEN, args, { cwd: ROOT, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<number>((done, failed) => {
    child.once("error", failed);
    child.once("close", (code) => done(code ?? 1));
  });
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr };
}

/** A copy of a folder, such as a sample, that a test may change; gone at the end of the block. */
export async function scratchFolder(folder: string): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), "mizzen-folder-"));
  await chmod(path, 0o755);
  await cp(resolve(ROOT, folder), path, { recursive: true });
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Starts the mesh of a folder (relative to the checkout, or absolute) and waits until it is ready. */
export async function upMesh(folder: string, options: UpMeshOptions = {}): Promise<RunningMesh> {
  const name = `t-${randomBytes(4).toString("hex")}`;
  const stateFolder = await mkdtemp(join(tmpdir(), "mizzen-state-"));
  const mesh = new RunningMesh(name, stateFolder);
  const args = ["up", folder, "--detach", "--free-ports", "--name", name, "--state", stateFolder];
  const { code, stderr } = await mizzen([...args, ...(options.args ?? [])], options.env);
  if (code !== 0) {
    const log = await mesh.allLogs();
    await mesh[Symbol.asyncDispose]();
    assert.fail(`mizzen up ended with code ${code}\n${stderr}\n${log}`);
  }
  return mesh;
}

export class RunningMesh implements AsyncDisposable {
  readonly name: string;
  readonly stateFolder: string;

  constructor(name: string, stateFolder: string) {
    this.name = name;
    this.stateFolder = stateFolder;
  }

  async status(): Promise<MeshStatus> {
    const { code, stdout, stderr } = await mizzen(["ps", "--state", this.stateFolder, "-o", "json"]);
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  }

  async member(name: string): Promise<MemberStatus> {
    const { members } = await this.status();
    const found = members.find((member) => member.name === name);
    assert.ok(found, `no member "${name}"`);
    return found;
  }

  /** `http://127.0.0.1:PORT` of the first published port of a member. */
  async address(member = "istio-ingressgateway"): Promise<string> {
    const { published } = await this.status();
    const found = published.find((port) => port.member.startsWith(`${member}.`));
    assert.ok(found, `"${member}" publishes no port`);
    return `http://${found.address}`;
  }

  /** Runs a command inside a workload. */
  exec(workload: string, command: readonly string[]): Promise<Finished> {
    return mizzen(["exec", "--state", this.stateFolder, workload, "--", ...command]);
  }

  /** Calls an address from inside a workload; an answer of any status is an answer, none fails the test. */
  async curl(workload: string, url: string, args: readonly string[] = []): Promise<Answer> {
    const { code, stdout, stderr } = await this.exec(workload, ["curl", "-sS", "-i", "-m", "20", ...args, url]);
    assert.equal(code, 0, `curl ${url} in ${workload}: ${stderr}`);
    return parseAnswer(stdout);
  }

  async logs(workload: string, log: "app" | "proxy" = "app"): Promise<string> {
    const proxy = log === "proxy" ? ["--proxy"] : [];
    const { code, stdout, stderr } = await mizzen(["logs", "--state", this.stateFolder, workload, ...proxy]);
    assert.equal(code, 0, stderr);
    return stdout;
  }

  /** Kills a part of the mesh at once; resolves to the number of the process that was killed. */
  async kill(part: Part, signal: NodeJS.Signals = "SIGKILL"): Promise<number> {
    const pid = await this.#pidOf(part);
    process.kill(pid, signal);
    return pid;
  }

  /** Waits until the condition holds; fails the test with the last status when it does not in time. */
  async until(condition: (status: MeshStatus) => boolean, timeoutMs = 30_000): Promise<MeshStatus> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const status = await this.status();
      if (condition(status)) return status;
      const members = status.members.map(({ name, ready, reason }) => `${name}: ${ready ? "ready" : reason}`);
      assert.ok(Date.now() < deadline, `not in ${timeoutMs} ms: ${members.join(", ")}`);
      await delay(50);
    }
  }

  down(): Promise<Finished> {
    return mizzen(["down", "--state", this.stateFolder]);
  }

  /** The ends of all logs, for the message of a failed test. */
  async allLogs(): Promise<string> {
    const folder = join(this.stateFolder, "logs");
    const child = spawn("sh", ["-c", 'for file in *; do echo "== $file"; tail -n 15 "$file"; done'], { cwd: folder });
    child.once("error", () => undefined);
    return text(child.stdout);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { code, stderr } = await this.down();
    await rm(this.stateFolder, { recursive: true, force: true });
    assert.equal(code, 0, stderr);
  }

  async #pidOf(part: Part): Promise<number> {
    const status = await this.status();
    if (part === "runner") return status.runner.pid;
    const { app, proxy } = await this.member(part === "istiod" ? "istiod" : part.member);
    const unit = part === "istiod" || part.process === "app" ? app : proxy;
    assert.ok(unit?.pid, `no process for ${JSON.stringify(part)}`);
    return part !== "istiod" && part.process === "envoy" ? envoyOf(unit.pid) : unit.pid;
  }
}

async function envoyOf(agent: number): Promise<number> {
  const children = await readFile(`/proc/${agent}/task/${agent}/children`, "utf8");
  for (const pid of children.trim().split(" ")) {
    if ((await readFile(`/proc/${pid}/comm`, "utf8")).startsWith("envoy")) return Number(pid);
  }
  return assert.fail(`the agent ${agent} has no Envoy`);
}

/** Reads what `curl -i` printed; interim answers before the last one are left out. */
function parseAnswer(printed: string): Answer {
  const end = printed.search(/\r\n\r\n/);
  const [first = "", ...lines] = printed.slice(0, end).split("\r\n");
  const status = Number(first.split(" ")[1]);
  const body = printed.slice(end + 4);
  if (status >= 100 && status < 200) return parseAnswer(body);
  const headers = lines.map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return { status, headers: Object.fromEntries(headers), body };
}
