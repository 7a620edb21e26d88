/**
 * One control plane at a time changes a CA folder. The lock is a file, since control planes may be in different containers
 * or on different machines that see the same folder. What is done under it takes milliseconds, so one that is old was left
 * by a process that ended.
 */
import { link, open, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { sleep } from "#lib/async/sleep.ts";
import { MeshError } from "#lib/mesh-error.ts";

/** The name of the lock in the folder. */
export const LOCK_NAME = ".lock";
const STALE_MS = 30_000;
const PATIENCE_MS = 60_000;
const POLL_MS = 50;
const UNTIL_DUE = new AbortController().signal;

/** Does the work while no other process does any in this folder. */
export async function withFolderLock<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const lock = join(folder, LOCK_NAME);
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await take(lock))) {
    if (Date.now() > deadline) {
      throw new MeshError("CA_FOLDER_BUSY", `another process keeps changing the CA folder "${folder}"`);
    }
    await removeStale(lock);
    await sleep(POLL_MS, UNTIL_DUE);
  }
  try {
    return await work();
  } finally {
    await rm(lock, { force: true });
  }
}

async function take(lock: string): Promise<boolean> {
  try {
    await (await open(lock, "wx")).close();
    return true;
  } catch (cause) {
    if (isCode(cause, "EEXIST")) return false;
    throw new MeshError("CA_FOLDER_UNWRITABLE", `cannot lock the CA folder by "${lock}" (ROOT_CA_DIR)`, { cause });
  }
}

/** Moves an old lock away first: of several who saw it only one succeeds, and whoever moved a new one puts it back. */
async function removeStale(lock: string): Promise<void> {
  try {
    const seen = await stat(lock);
    if (Date.now() - seen.mtimeMs < STALE_MS) return;
    const aside = `${lock}-${process.pid}`;
    await rename(lock, aside);
    if ((await stat(aside)).ino !== seen.ino) await link(aside, lock);
    await rm(aside);
  } catch (error) {
    // Its owner, or somebody else who waits, was faster.
    if (!isCode(error, "ENOENT") && !isCode(error, "EEXIST")) throw error;
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
