/**
 * Which files an agent of several workloads reads for one of them. Whoever reaches a workload's SDS socket names the files of a secret, and
 * the agent may read more than the workload: the keys of its neighbours, for example.
 */
import { type FileHandle, readlink, realpath, stat } from "node:fs/promises";
import { dirname, sep } from "node:path";

const READ_BY_OTHERS = 0o004;
const ENTERED_BY_OTHERS = 0o001;

/** True for an open file below the workload's own folder, or one that every account can read. */
export async function isForWorkload(folder: string, file: Pick<FileHandle, "fd">): Promise<boolean> {
  // The file that was opened, whatever its path leads to by now.
  const path = await readlink(`/proc/self/fd/${file.fd}`);
  return path.startsWith((await realpath(folder)) + sep) || (await isPublic(path));
}

async function isPublic(path: string): Promise<boolean> {
  if (((await stat(path)).mode & READ_BY_OTHERS) === 0) return false;
  for (let above = dirname(path); ; above = dirname(above)) {
    if (((await stat(above)).mode & ENTERED_BY_OTHERS) === 0) return false;
    if (above === dirname(above)) return true;
  }
}
