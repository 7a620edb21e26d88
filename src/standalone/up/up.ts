/** Starts a mesh: checks everything, opens the published ports, and puts a runner into a fabric of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:dgram";
import { chmod, mkdir, open, readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { sleep } from "#lib/async/sleep.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { askMesh } from "../control/ask.ts";
import type { FromRunner, ToRunner } from "../control/messages.ts";
import type { ChangeSummary } from "../control/protocol.ts";
import { checkEgressRange } from "../egress/check-range.ts";
import { checkEgress, openEgress } from "../egress/open-egress.ts";
import { diskProblem } from "../host/disk-problem.ts";
import { ignoring } from "../host/ignoring.ts";
import { makeNamespace } from "../host/namespaces.ts";
import { makeFolderPath } from "../host/write-files.ts";
import type { AgentsMode, Mesh, Suggestion } from "../mesh/mesh.ts";
import { type MeshProblem, readMesh } from "../mesh/read-mesh.ts";
import { fabricNamespace, meshId, namespaceFile } from "../plan/names.ts";
import type { Desired } from "../plan/plan.ts";
import { statePaths } from "../plan/state-paths.ts";
import { type OpenPort, openHostPorts } from "../ports/host-ports.ts";
import { wantedPorts } from "../ports/published.ts";
import { cleanMesh } from "../run/clean.ts";
import type { MeshStatus } from "../status/status.ts";
import { checkPolicies } from "./check-policies.ts";
import { withEnvFiles } from "./env-files.ts";
import {
  checkMachine,
  checkMesh,
  checkStateAccess,
  checkStatePlace,
  findGroups,
  type InstalledPrograms,
  placeApps,
  placePrograms,
} from "./preflight.ts";
import { claim, handOver, liveRegistration, type Registration } from "./registration.ts";
import { lockMesh } from "./start-lock.ts";
import { usersFor } from "./users.ts";

export interface UpOptions {
  /** Folder with a mesh.yaml, or such a file. */
  readonly folder: string;
  /** Instead of the name in the file. */
  readonly name: string | undefined;
  /** State folder by the name of the mesh. */
  readonly stateFolder: (name: string) => string;
  readonly freePorts: boolean;
  /** Workloads reach what this machine reaches. */
  readonly egress: boolean;
  /** The machine's network belongs to somebody else. */
  readonly rootless: boolean;
  /** Instead of what the file says. */
  readonly agents: AgentsMode | undefined;
  /** The mesh ends with its jobs, whatever the file says. */
  readonly exitWhenDone: boolean;
  readonly detached: boolean;
  readonly startTimeoutMs: number;
  readonly installed: InstalledPrograms;
  /** How to start a runner: the command line of this program with the command that becomes one. */
  readonly runner: readonly string[];
  /** PATH of this process. */
  readonly path: string;
  readonly onProgress: (line: string) => void;
}

/** What `up` did: started the mesh, or changed one that was up. */
export type UpResult =
  | { readonly kind: "started"; readonly mesh: StartedMesh }
  | { readonly kind: "applied"; readonly summary: ChangeSummary };

/** A mesh that has been started. */
export interface StartedMesh {
  readonly registration: Omit<Registration, "owner">;
  readonly suggestions: readonly Suggestion[];
  /** Resolves when the mesh is ready, or has ended with its jobs; rejects when it does not get there. */
  readonly ready: Promise<MeshStatus | undefined>;
  /** Resolves when the runner has ended, to the way it did. */
  readonly ended: Promise<RunnerEnd>;
  /** Asks the runner to stop. */
  stop(): void;
  /** Ends the runner and everything else at once. */
  kill(): Promise<void>;
  /** Lets go of the runner, so that this process can end. */
  release(): void;
}

export interface RunnerEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Of its jobs, when the mesh ended with them. */
  readonly jobsCode: number | undefined;
}

/** Where a mesh and everything about it is known. */
interface Target {
  readonly options: UpOptions;
  readonly mesh: Mesh;
  readonly checked: Pick<Desired, "accounts" | "privateConfig" | "groups">;
  readonly registration: Omit<Registration, "owner">;
}

/** How long a start or an end of the same mesh that is under way is waited for. */
const BUSY_MS = 30_000;
const POLL_MS = 100;
/** The runner is there, but not listening yet or not any more. */
const NOT_NOW: readonly string[] = ["MESH_NOT_LISTENING", "MESH_ENDING", "RUNNER_LOST"];

/** Begins to start a mesh, or changes the one that is up. Until this resolves nothing of it is left behind on failure. */
export async function up(options: UpOptions): Promise<UpResult> {
  const mesh = await loadMesh(options);
  await checkMachine({ uid: process.getuid?.(), path: options.path });
  if (options.egress) {
    await checkEgress(options);
    await checkEgressRange(mesh.cidr);
  }
  const checked = { ...(await checkMesh(mesh)), groups: await findGroups(mesh) };
  await checkPolicies(mesh.config);
  const stateFolder = await prepareStateFolder(options.stateFolder(mesh.name), mesh);
  const registration = { id: meshId(stateFolder), name: mesh.name, file: mesh.file, stateFolder };
  const target = { options, mesh, checked, registration };
  const deadline = Date.now() + BUSY_MS;
  for (;;) {
    const running = await liveRegistration(registration.id);
    if (running === undefined) {
      const started = await start(target);
      if (started !== undefined) return { kind: "started", mesh: started };
      continue;
    }
    try {
      return { kind: "applied", summary: await apply(target, running) };
    } catch (error) {
      if (!(error instanceof MeshError && NOT_NOW.includes(error.code)) || Date.now() > deadline) throw error;
      await sleep(POLL_MS, new AbortController().signal);
    }
  }
}

/** Starts the mesh from nothing; undefined when somebody else was faster. */
async function start({ options, mesh, checked, registration: found }: Target): Promise<StartedMesh | undefined> {
  const { id, stateFolder } = found;
  await using _ = await lockMesh({ id, timeoutMs: BUSY_MS });
  if ((await liveRegistration(id)) !== undefined) return undefined;
  const registration = { ...found, users: await usersFor(id) };
  await claim(registration);
  try {
    await rm(statePaths(stateFolder).logs, { recursive: true, force: true });
    const ports = await openHostPorts(wantedPorts(mesh.members), options.freePorts);
    const desired = await desiredOf({ options, mesh, checked, registration });
    return await startRunner({ options, registration, ports, desired });
  } catch (error) {
    await cleanMesh({ id, stateFolder, graceMs: 0 });
    throw diskProblem(error, stateFolder);
  }
}

/** Tells the mesh that is up what it is to become. */
async function apply(target: Target, running: Registration): Promise<ChangeSummary> {
  const { options, mesh, registration } = target;
  if (running.file !== registration.file) {
    throw new MeshError(
      "MESH_ALREADY_UP",
      `Cannot start mesh "${mesh.name}": a mesh of this name is up from "${running.file}"; choose another name with --name, or stop that one with \`mizzen down --mesh ${mesh.name}\``,
    );
  }
  const { freePorts, startTimeoutMs, onProgress } = options;
  const status = await askMesh(registration.stateFolder, { kind: "status" });
  if (options.egress && !status.egress) {
    throw new MeshError(
      "MESH_ALREADY_UP",
      `Cannot give mesh "${mesh.name}" a way out while it is up; run \`mizzen down --mesh ${mesh.name}\` first`,
    );
  }
  const desired = await desiredOf({ ...target, registration: running });
  const request = { kind: "apply", desired, freePorts, timeoutMs: startTimeoutMs } as const;
  return askMesh(registration.stateFolder, request, { onProgress });
}

async function desiredOf({ options, mesh, checked, registration }: Target): Promise<Desired> {
  const { id, stateFolder } = registration;
  const { runtime } = statePaths(stateFolder);
  const programs = await placePrograms(options.installed, runtime);
  const workingCopies = await placeApps({ mesh, accounts: checked.accounts, programs, runtimeFolder: runtime });
  return { mesh, id, stateFolder, users: registration.users, programs, workingCopies, ...checked };
}

/** Finds, reads and checks the mesh file. */
async function loadMesh({
  folder,
  name,
  exitWhenDone,
  agents,
  onProgress,
}: Pick<UpOptions, "folder" | "name" | "exitWhenDone" | "agents" | "onProgress">): Promise<Mesh> {
  const file = await meshFile(folder);
  const { mesh, problems } = readMesh({ text: await readFile(file, "utf8"), file });
  const lines = problems.map((problem) => describe(file, problem));
  if (mesh === undefined) throw new MeshError("MESH_FILE_INVALID", lines.join("\n"));
  for (const line of lines) onProgress(`warning: ${line}`);
  const filled = await withEnvFiles(mesh);
  return {
    ...filled,
    name: name ?? mesh.name,
    agents: agents ?? mesh.agents,
    exitWhenDone: exitWhenDone || mesh.exitWhenDone,
  };
}

/** The absolute path of the mesh file that a person means by a folder or a file. */
export async function meshFile(folder: string): Promise<string> {
  const path = resolve(folder);
  const info = await ignoring(["ENOENT", "ENOTDIR"], () => stat(path));
  if (info === undefined) throw new MeshError("MESH_FILE_MISSING", `Cannot find "${folder}"`);
  const file = info.isDirectory() ? join(path, "mesh.yaml") : path;
  if (!(await ignoring(["ENOENT"], () => stat(file)))?.isFile()) {
    throw new MeshError("MESH_FILE_MISSING", `Cannot find a file "mesh.yaml" in "${folder}"`);
  }
  return file;
}

function describe(file: string, { line, field, message }: MeshProblem): string {
  return `${relative(process.cwd(), file)}:${line}: ${field === "" ? "" : `${field} `}${message}`;
}

async function prepareStateFolder(folder: string, mesh: Mesh): Promise<string> {
  checkStatePlace(folder, mesh);
  try {
    await makeFolderPath(folder);
    const real = await realpath(folder);
    await markFolder(real);
    await checkStateAccess(real);
    return real;
  } catch (cause) {
    const problem = diskProblem(cause, folder);
    if (problem instanceof MeshError) throw problem;
    throw new MeshError("STATE_UNWRITABLE", `Cannot keep state in "${folder}"; choose another folder with --state`, {
      cause,
    });
  }
}

/** Takes an empty folder for the mesh. One that holds other things is refused: part of it would be removed. */
async function markFolder(folder: string): Promise<void> {
  const { mark } = statePaths(folder);
  const names = await readdir(folder);
  if (names.length > 0 && !names.includes(basename(mark))) {
    throw new MeshError(
      "STATE_NOT_EMPTY",
      `Cannot keep state in "${folder}": it holds other files; choose an empty or new folder with --state`,
    );
  }
  await writeFile(mark, "");
  await chmod(folder, 0o755);
}

interface RunnerInput {
  readonly options: UpOptions;
  readonly registration: Omit<Registration, "owner">;
  readonly ports: readonly OpenPort[];
  readonly desired: Desired;
}

async function startRunner({ options, registration, ports, desired }: RunnerInput): Promise<StartedMesh> {
  const { id, stateFolder } = registration;
  const { runnerLog } = statePaths(stateFolder);
  const fabric = fabricNamespace(id);
  await makeFabric(fabric);
  const egress = options.egress ? await openEgress({ id, fabric, rootless: options.rootless }) : undefined;
  await mkdir(dirname(runnerLog), { recursive: true });
  const log = await open(runnerLog, "a", 0o600);
  const outside = await open("/proc/self/ns/net", "r");
  const child = spawn("nsenter", [`--net=${namespaceFile(fabric)}`, "--", ...options.runner], {
    cwd: dirname(runnerLog),
    // After the channel comes HOST_NETWORK_FD, then what keeps a way out open.
    stdio: ["ignore", log.fd, log.fd, "ipc", outside.fd, ...(egress?.keeper === undefined ? [] : [egress.keeper])],
    detached: true,
  });
  await Promise.all([log.close(), outside.close()]);
  egress?.keeper?.destroy();
  const ended = untilEnded(child);
  await handOver(registration, child.pid ?? 0);
  for (const { server, port } of ports) {
    await send(child, { kind: "port", port }, server);
    server.close();
  }
  if (egress !== undefined) {
    await send(child, { kind: "resolver" }, egress.resolver);
    egress.resolver.close();
  }
  const { detached, startTimeoutMs } = options;
  const ready = untilReady(child, options.onProgress, ended);
  // Whoever waits for it hears of a failure; one that comes before anybody does is no bug of ours.
  ready.catch(() => undefined);
  await send(child, { kind: "start", desired, detached, startTimeoutMs });
  return {
    registration,
    suggestions: desired.mesh.suggestions,
    ready,
    ended,
    stop: () => void child.kill("SIGTERM"),
    kill: () => cleanMesh({ id, stateFolder, graceMs: 0 }),
    release: () => {
      child.disconnect();
      child.unref();
    },
  };
}

async function makeFabric(netns: string): Promise<void> {
  try {
    await makeNamespace(netns);
  } catch (cause) {
    throw new MeshError(
      "NAMESPACE_FAILED",
      "Cannot make a network namespace: this root lacks the right to (in a container, run it privileged)",
      { cause },
    );
  }
}

function untilEnded(child: ChildProcess): Promise<RunnerEnd> {
  let jobsCode: number | undefined;
  child.on("message", (message: FromRunner) => {
    if (message.kind === "finished") jobsCode = message.code;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve({ code, signal, jobsCode }));
  });
}

function untilReady(
  child: ChildProcess,
  onProgress: (line: string) => void,
  ended: Promise<RunnerEnd>,
): Promise<MeshStatus | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<MeshStatus | undefined>();
  child.on("message", (message: FromRunner) => {
    if (message.kind === "progress") onProgress(message.line);
    else if (message.kind === "ready") resolve(message.status);
    else if (message.kind === "finished") resolve(undefined);
    else reject(new MeshError(message.code, message.message));
  });
  ended.then(
    ({ code, signal }) =>
      reject(new MeshError("START_FAILED", `the mesh's runner ended (${signal ?? `exit ${code}`})`)),
    reject,
  );
  return promise;
}

function send(child: ChildProcess, message: ToRunner, handle?: OpenPort["server"] | Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    child.send(message, handle, {}, (error) => {
      if (error === null) resolve();
      else reject(new MeshError("START_FAILED", `the mesh's runner does not listen: ${errorText(error)}`));
    });
  });
}
