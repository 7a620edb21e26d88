/** Starts a mesh: checks everything, opens the published ports, and puts a runner into a fabric of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { chmod, mkdir, open, readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { ignoring } from "../host/ignoring.ts";
import { makeNamespace } from "../host/namespaces.ts";
import { makeFolderPath } from "../host/write-files.ts";
import type { Mesh } from "../mesh/mesh.ts";
import { type MeshProblem, readMesh } from "../mesh/read-mesh.ts";
import { fabricNamespace, meshId, namespaceFile } from "../plan/names.ts";
import type { PlanInput } from "../plan/plan.ts";
import { statePaths } from "../plan/state-paths.ts";
import { cleanMesh } from "../run/clean.ts";
import type { MeshStatus } from "../run/status.ts";
import { type OpenPort, openHostPorts } from "./host-ports.ts";
import type { FromRunner, ToRunner } from "./messages.ts";
import {
  checkMachine,
  checkMesh,
  checkStateAccess,
  checkStatePlace,
  type InstalledPrograms,
  placeApps,
  placePrograms,
} from "./preflight.ts";
import { claim, handOver, type Registration } from "./registration.ts";

export interface UpOptions {
  /** Folder with a mesh.yaml, or such a file. */
  readonly folder: string;
  /** Instead of the name in the file. */
  readonly name: string | undefined;
  /** State folder by the name of the mesh. */
  readonly stateFolder: (name: string) => string;
  readonly freePorts: boolean;
  readonly detached: boolean;
  readonly startTimeoutMs: number;
  readonly installed: InstalledPrograms;
  /** How to start a runner: the command line of this program with the command that becomes one. */
  readonly runner: readonly string[];
  /** PATH of this process. */
  readonly path: string;
  readonly onProgress: (line: string) => void;
}

/** A mesh that has been started. */
export interface StartedMesh {
  readonly registration: Omit<Registration, "owner">;
  /** Resolves when the mesh is ready; rejects when it does not get there. */
  readonly ready: Promise<MeshStatus>;
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
}

/** Begins to start a mesh. Until this resolves nothing of it is left behind on failure. */
export async function up(options: UpOptions): Promise<StartedMesh> {
  const mesh = await loadMesh(options);
  await checkMachine({ uid: process.getuid?.(), path: options.path });
  const checked = await checkMesh(mesh);
  const stateFolder = await prepareStateFolder(options.stateFolder(mesh.name), mesh);
  const id = meshId(stateFolder);
  const registration = { id, name: mesh.name, file: mesh.file, stateFolder };
  await claim(registration);
  try {
    const { runtime, logs } = statePaths(stateFolder);
    await rm(logs, { recursive: true, force: true });
    const ports = await openHostPorts(mesh, options.freePorts);
    const programs = await placePrograms(options.installed, runtime);
    const workingCopies = await placeApps({ mesh, accounts: checked.accounts, programs, runtimeFolder: runtime });
    const input = { mesh, id, stateFolder, programs, workingCopies, ...checked };
    return await startRunner({ options, registration, ports, input });
  } catch (error) {
    await cleanMesh({ id, stateFolder, graceMs: 0 });
    throw error;
  }
}

/** Finds, reads and checks the mesh file. */
export async function loadMesh({
  folder,
  name,
  onProgress,
}: Pick<UpOptions, "folder" | "name" | "onProgress">): Promise<Mesh> {
  const file = await meshFile(folder);
  const { mesh, problems } = readMesh({ text: await readFile(file, "utf8"), file });
  const lines = problems.map((problem) => describe(file, problem));
  if (mesh === undefined) throw new MeshError("MESH_FILE_INVALID", lines.join("\n"));
  for (const line of lines) onProgress(`warning: ${line}`);
  return name === undefined ? mesh : { ...mesh, name };
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
    if (cause instanceof MeshError) throw cause;
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
  readonly input: Omit<PlanInput, "jwtRule">;
}

async function startRunner({ options, registration, ports, input }: RunnerInput): Promise<StartedMesh> {
  const { id, stateFolder } = registration;
  const { runnerLog } = statePaths(stateFolder);
  const fabric = fabricNamespace(id);
  await makeFabric(fabric);
  await mkdir(dirname(runnerLog), { recursive: true });
  const log = await open(runnerLog, "a", 0o600);
  const child = spawn("nsenter", [`--net=${namespaceFile(fabric)}`, "--", ...options.runner], {
    cwd: dirname(runnerLog),
    stdio: ["ignore", log.fd, log.fd, "ipc"],
    detached: true,
  });
  await log.close();
  const ended = new Promise<RunnerEnd>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve({ code, signal }));
  });
  await handOver(registration, child.pid ?? 0);
  for (const { server, ...port } of ports) {
    await send(child, { kind: "port", port }, server);
    server.close();
  }
  const { detached, startTimeoutMs } = options;
  const ready = untilReady(child, options.onProgress, ended);
  await send(child, { kind: "start", input, detached, startTimeoutMs });
  return {
    registration,
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

function untilReady(
  child: ChildProcess,
  onProgress: (line: string) => void,
  ended: Promise<RunnerEnd>,
): Promise<MeshStatus> {
  const { promise, resolve, reject } = Promise.withResolvers<MeshStatus>();
  child.on("message", (message: FromRunner) => {
    if (message.kind === "progress") onProgress(message.line);
    else if (message.kind === "ready") resolve(message.status);
    else reject(new MeshError(message.code, message.message));
  });
  ended.then(
    ({ code, signal }) =>
      reject(new MeshError("START_FAILED", `the mesh's runner ended (${signal ?? `exit ${code}`})`)),
    reject,
  );
  return promise;
}

function send(child: ChildProcess, message: ToRunner, handle?: OpenPort["server"]): Promise<void> {
  return new Promise((resolve, reject) => {
    child.send(message, handle, {}, (error) => {
      if (error === null) resolve();
      else reject(new MeshError("START_FAILED", `the mesh's runner does not listen: ${errorText(error)}`));
    });
  });
}
