/** Removes everything of a mesh that the machine would not forget by itself. Safe to repeat, and on whatever is left. */
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { disconnectHost } from "../egress/host-side.ts";
import { removeGroupsOf } from "../host/control-groups.ts";
import { diskProblem } from "../host/disk-problem.ts";
import { ignoring } from "../host/ignoring.ts";
import { namespaceInode, namespacesOf, removeNamespace } from "../host/namespaces.ts";
import { endProcessesIn } from "../host/processes.ts";
import { unlistMesh } from "../host/run-folders.ts";
import { MESHES_FOLDER } from "../plan/names.ts";
import { sharedAgentFolder } from "../plan/shared-agent.ts";
import { statePaths, volatilePaths } from "../plan/state-paths.ts";

export interface CleanInput {
  readonly id: string;
  readonly stateFolder: string;
  /** Time for processes to end by themselves. */
  readonly graceMs: number;
  /** How a program is run in the machine's own network; not needed by those who are in it. */
  readonly outside?: readonly string[] | undefined;
}

/** Processes first, found by the network namespaces they are in; then the namespaces; then files that describe them. */
export async function cleanMesh({ id, stateFolder, graceMs, outside = [] }: CleanInput): Promise<void> {
  const namespaces = await namespacesOf(id);
  const inodes = await Promise.all(namespaces.map(namespaceInode));
  await endProcessesIn(new Set(inodes.filter((inode) => inode !== undefined)), graceMs);
  for (const netns of namespaces) await removeNamespace(netns);
  await disconnectHost(id, outside);
  await removeGroupsOf(id);
  await rm(sharedAgentFolder(id), { recursive: true, force: true });
  // Off the list before the files go: on a disk that cannot be written these stay, and nothing else.
  await unlistMesh(registrationFile(id));
  await cleanState(stateFolder);
}

/** Only in a folder that is marked as ours: a person may have named any folder. */
async function cleanState(stateFolder: string): Promise<void> {
  const paths = statePaths(stateFolder);
  if ((await ignoring(["ENOENT", "ENOTDIR"], () => stat(paths.mark))) === undefined) return;
  try {
    for (const path of volatilePaths(paths)) await rm(path, { recursive: true, force: true });
  } catch (error) {
    throw diskProblem(error, stateFolder);
  }
}

/** Where a mesh is listed among those of this machine. */
export function registrationFile(id: string): string {
  return join(MESHES_FOLDER, `${id}.json`);
}
