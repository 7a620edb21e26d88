/** Takes a mesh down, whatever state it is in. */
import { readFile, realpath } from "node:fs/promises";
import { basename } from "node:path";
import { sleep } from "#lib/async/sleep.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { isAlive, type ProcessId } from "#lib/process-id.ts";
import { ignoring } from "../host/ignoring.ts";
import { signalProcess } from "../host/processes.ts";
import { readMesh } from "../mesh/read-mesh.ts";
import { meshId } from "../plan/names.ts";
import { cleanMesh } from "../run/clean.ts";
import { liveRegistration, registrations } from "../up/registration.ts";
import { lockMesh } from "../up/start-lock.ts";
import { meshFile } from "../up/up.ts";
import { findMesh, type MeshChoice, matching } from "./find-mesh.ts";

export interface DownRequest {
  /** Folder of the mesh file, when given. */
  readonly folder: string | undefined;
  readonly choice: MeshChoice;
  /** State folder by the name of a mesh. */
  readonly defaultStateFolder: (name: string) => string;
}

export interface MeshRemains {
  readonly id: string;
  readonly name: string;
  readonly stateFolder: string;
  /** Whoever answers for the mesh; undefined when nobody does. */
  readonly owner: ProcessId | undefined;
}

/** The mesh to take down; undefined when there is none. After a reboot only its state folder tells of it. */
export async function meshToTakeDown({
  folder,
  choice,
  defaultStateFolder,
}: DownRequest): Promise<MeshRemains | undefined> {
  const file = folder === undefined ? undefined : await meshFile(folder);
  const found = await matching(await registrations(), { ...choice, file });
  const [only, second] = found;
  if (only !== undefined) return second === undefined ? only : findMesh({ ...choice, file });
  const stateFolder = choice.stateFolder ?? (await stateFolderOf(file, choice.name, defaultStateFolder));
  const real = stateFolder && (await ignoring(["ENOENT", "ENOTDIR"], () => realpath(stateFolder)));
  if (real !== undefined && real !== "") {
    return { id: meshId(real), name: choice.name ?? basename(real), stateFolder: real, owner: undefined };
  }
  // A name that nobody has is most likely a mistake; a folder whose mesh is not up is what was wanted.
  return choice.name === undefined ? undefined : findMesh(choice);
}

async function stateFolderOf(
  file: string | undefined,
  name: string | undefined,
  defaultStateFolder: (name: string) => string,
): Promise<string | undefined> {
  if (name !== undefined) return defaultStateFolder(name);
  if (file === undefined) return undefined;
  const { mesh } = readMesh({ text: await readFile(file, "utf8"), file });
  if (mesh !== undefined) return defaultStateFolder(mesh.name);
  throw new MeshError("MESH_FILE_INVALID", `Cannot tell which mesh "${file}" is: name it with --mesh or --state`);
}

/** The runner lets apps end by themselves for a while; after this it is not waited for. */
const RUNNER_MS = 15_000;
const GRACE_MS = 2000;
const POLL_MS = 20;

/** Asks the runner to remove everything, then removes whatever is still there. Resolves when nothing is left. */
export async function down({ id, stateFolder, owner }: MeshRemains): Promise<void> {
  const deadline = Date.now() + RUNNER_MS;
  const never = new AbortController().signal;
  if (owner !== undefined && (await isAlive(owner))) {
    signalProcess(owner.pid, "SIGTERM");
    while ((await isAlive(owner)) && Date.now() < deadline) await sleep(POLL_MS, never);
    if (await isAlive(owner)) signalProcess(owner.pid, "SIGKILL");
  }
  await using _ = await lockMesh({ id, timeoutMs: RUNNER_MS });
  // Somebody may have started it again meanwhile.
  if ((await liveRegistration(id)) === undefined) await cleanMesh({ id, stateFolder, graceMs: GRACE_MS });
}
