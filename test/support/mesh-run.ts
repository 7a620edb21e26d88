/**
 * A one-machine mesh for tests, started by the library that people use for theirs, with what only tests of the mesh itself
 * do. Each has a name, a state folder and free host ports of its own; all of it is gone at the end of the block.
 *
 *     await using mesh = await upMesh("samples/httpbin");
 *     const { body } = await mesh.curl("sleep", "http://httpbin:8000/headers");
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { chmod, cp, mkdtemp, readFile, readlink, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { openMesh, startMesh } from "#bin/mesh.ts";
import type { ExecResult, Mesh, StartMeshOptions, Workload } from "#standalone/library/api.ts";
import { namespaceFile } from "#standalone/plan/names.ts";
import { statePaths } from "#standalone/plan/state-paths.ts";
import { type MemberStatus, type MeshStatus, readStatus } from "#standalone/status/status.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** The command under test; one of another build can be tried instead. */
export const MIZZEN = process.env.MIZZEN ?? join(ROOT, "bin/mizzen");

export type Finished = ExecResult;

export interface Answer {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
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
export async function upMesh(folder: string, options: StartMeshOptions = {}): Promise<RunningMesh> {
  const mesh = await startMesh(resolve(ROOT, folder), options);
  return new RunningMesh(mesh.name, mesh.state, mesh);
}

/** A mesh as tests look at it: by the library, and by what only tests do. */
export class RunningMesh implements AsyncDisposable {
  readonly name: string;
  readonly stateFolder: string;
  readonly #started: Mesh | undefined;

  /** Without a mesh of its own, the one that is up with this state folder, whoever started it. */
  constructor(name: string, stateFolder: string, started?: Mesh) {
    this.name = name;
    this.stateFolder = stateFolder;
    this.#started = started;
  }

  async status(): Promise<MeshStatus> {
    const status = await readStatus(statePaths(this.stateFolder).status);
    return status ?? assert.fail(`no mesh is up in ${this.stateFolder}`);
  }

  async member(name: string): Promise<MemberStatus> {
    const { members } = await this.status();
    const found = members.find((member) => member.name === name);
    assert.ok(found, `no member "${name}"`);
    return found;
  }

  async workload(name: string): Promise<Workload> {
    return (await this.mesh()).workload(name);
  }

  /** `http://127.0.0.1:PORT` of the first published port of a member. */
  async address(member = "istio-ingressgateway"): Promise<string> {
    return (await this.mesh()).url(member);
  }

  /** Runs a command inside a workload. */
  async exec(workload: string, command: readonly string[]): Promise<Finished> {
    return (await this.workload(workload)).exec(command);
  }

  /** Calls an address from inside a workload by curl; an answer of any status is an answer, none fails the test. */
  async curl(workload: string, url: string, args: readonly string[] = []): Promise<Answer> {
    const { code, stdout, stderr } = await this.exec(workload, ["curl", "-sS", "-i", "-m", "20", ...args, url]);
    assert.equal(code, 0, `curl ${url} in ${workload}: ${stderr}`);
    return parseAnswer(stdout);
  }

  async logs(workload: string, log: "app" | "proxy" = "app"): Promise<string> {
    return (await this.workload(workload)).logs(log);
  }

  /** The mesh itself. */
  async mesh(): Promise<Mesh> {
    return this.#started ?? openMesh(this.stateFolder);
  }

  /** Kills a part of the mesh at once; resolves to the number of the process that was killed. */
  async kill(part: Part, signal: NodeJS.Signals = "SIGKILL"): Promise<number> {
    const pid = await this.#pidOf(part);
    process.kill(pid, signal);
    return pid;
  }

  /** Waits until the condition holds; fails the test with the last status when it does not in time. */
  async until(condition: (status: MeshStatus) => boolean, timeoutMs = 60_000): Promise<MeshStatus> {
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

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.mesh()).stop();
  }

  async #pidOf(part: Part): Promise<number> {
    const status = await this.status();
    if (part === "runner") return status.runner.pid;
    const { app, proxy } = await this.member(part === "istiod" ? "istiod" : part.member);
    const unit = part === "istiod" || part.process === "app" ? app : proxy;
    assert.ok(unit?.pid, `no process for ${JSON.stringify(part)}`);
    if (part === "istiod" || part.process !== "envoy") return unit.pid;
    return envoyOf(unit.pid, (await this.member(part.member)).shell.place.netns);
  }
}

async function envoyOf(agent: number, netns: string): Promise<number> {
  const children = await childrenOf(agent);
  const { ino } = await stat(namespaceFile(netns));
  // A shared agent's Envoys are below those who entered their places.
  for (const pid of [...children, ...(await Promise.all(children.map(childrenOf))).flat()]) {
    const isEnvoy = (await readFile(`/proc/${pid}/comm`, "utf8")).startsWith("envoy");
    if (isEnvoy && (await readlink(`/proc/${pid}/ns/net`)) === `net:[${ino}]`) return pid;
  }
  return assert.fail(`the agent ${agent} has no Envoy`);
}

async function childrenOf(pid: number): Promise<readonly number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
  return children.split(" ").filter(Boolean).map(Number);
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
