/** The meshes of this machine: who has which id, and which process answers for it. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { MeshError } from "#lib/mesh-error.ts";
import { identify, isAlive, type ProcessId } from "#lib/process-id.ts";
import { ignoring } from "../host/ignoring.ts";
import { listMesh } from "../host/run-folders.ts";
import { writeAtomically } from "../host/write-files.ts";
import { MESHES_FOLDER } from "../plan/names.ts";
import type { UserRange } from "../plan/users.ts";
import { cleanMesh, registrationFile } from "../run/clean.ts";

export interface Registration {
  readonly id: string;
  readonly name: string;
  /** The mesh file. */
  readonly file: string;
  readonly stateFolder: string;
  /** User ids of its own; undefined where there is only one account. */
  readonly users?: UserRange | undefined;
  /** The runner; before there is one, whoever starts it. */
  readonly owner: ProcessId;
}

/** The mesh of this id, when somebody answers for it. */
export async function liveRegistration(id: string): Promise<Registration | undefined> {
  const found = await readRegistration(registrationFile(id));
  return found !== undefined && (await isAlive(found.owner)) ? found : undefined;
}

/** Takes the id for this process, which holds the lock of the mesh. What a mesh that died left behind is removed first. */
export async function claim(mesh: Omit<Registration, "owner">): Promise<void> {
  const owner = await ownIdentity();
  await cleanMesh({ id: mesh.id, stateFolder: mesh.stateFolder, graceMs: 0 });
  await listMesh(registrationFile(mesh.id), JSON.stringify({ ...mesh, owner }));
}

/** Hands the id over to the runner. */
export async function handOver(mesh: Omit<Registration, "owner">, pid: number): Promise<void> {
  const owner = await identify(pid);
  if (owner === undefined)
    throw new MeshError("START_FAILED", `Cannot start mesh "${mesh.name}": its runner ended at once`);
  const text = JSON.stringify({ ...mesh, owner });
  await writeAtomically({ path: registrationFile(mesh.id), text, mode: 0o600, owner: 0 });
}

/** All meshes that were started and not taken down, alive or not. */
export async function registrations(): Promise<Registration[]> {
  const names = (await ignoring(["ENOENT"], () => readdir(MESHES_FOLDER))) ?? [];
  const files = names.filter((name) => /^[0-9a-f]+\.json$/.test(name));
  const found = await Promise.all(files.map((name) => readRegistration(join(MESHES_FOLDER, name))));
  return found.filter((registration) => registration !== undefined);
}

async function readRegistration(file: string): Promise<Registration | undefined> {
  const text = await ignoring(["ENOENT"], () => readFile(file, "utf8"));
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    // Half written when its process was killed: as good as none.
    return undefined;
  }
}

async function ownIdentity(): Promise<ProcessId> {
  const own = await identify(process.pid);
  if (own === undefined) throw new Error("a process knows itself");
  return own;
}
