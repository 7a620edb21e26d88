/**
 * One control plane at a time changes a CA folder. The lock is a file, since control planes may be in different containers
 * or on different machines that see the same folder. What is done under it takes milliseconds, so one that is old was left
 * by a process that ended. Who sees the same processes as its owner knows that at once.
 */
import { link, open, readFile, readlink, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { sleep } from "#lib/async/sleep.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { bootId, identify } from "#lib/process-id.ts";

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
    await using file = await open(lock, "wx");
    await file.writeFile(await ownMark());
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
    if (Date.now() - seen.mtimeMs < STALE_MS && !(await hasEnded(lock))) return;
    const aside = `${lock}-${process.pid}`;
    await rename(lock, aside);
    if ((await stat(aside)).ino !== seen.ino) await link(aside, lock);
    await rm(aside);
  } catch (error) {
    // Its owner, or somebody else who waits, was faster.
    if (!isCode(error, "ENOENT") && !isCode(error, "EEXIST")) throw error;
  }
}

/** Whether the owner is known to be gone; false for locks of elsewhere, and for those that do not say whose they are. */
async function hasEnded(lock: string): Promise<boolean> {
  const [, around = "", pid, startTime = ""] = MARK.exec(await readFile(lock, "utf8")) ?? [];
  if (around === "" || around !== (await surroundings())) return false;
  return (await identify(Number(pid)))?.startTime !== startTime;
}

/** Where the owner is, its number and when it began. */
const MARK = /^(\S+) (\d+) (\d+)$/;

async function ownMark(): Promise<string> {
  const own = await identify(process.pid);
  return `${await surroundings()} ${own?.pid} ${own?.startTime}`;
}

/** Among which processes a number is unique: containers have numbers of their own. Empty where the kernel does not tell. */
async function surroundings(): Promise<string> {
  try {
    return `${await bootId()}/${await readlink("/proc/self/ns/pid")}`;
  } catch {
    return "";
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
