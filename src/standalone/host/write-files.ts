/** Carries out the files and folders of a plan. */
import { chmod, lchown, mkdir, readdir, rename, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { FilePlan, FolderPlan } from "../plan/files.ts";
import { ignoring } from "./ignoring.ts";

/** Makes folders, each with its own owner and mode, those above it included when they are in the list. */
export async function makeFolders(folders: readonly FolderPlan[]): Promise<void> {
  for (const { path, mode, owner, group } of folders) {
    await mkdir(path, { recursive: true });
    await own(path, owner, group);
    await chmod(path, mode);
  }
}

/** Gives a file to an account; in a user namespace that maps no such account everything stays with its only one. */
export async function own(path: string, owner: number, group = owner): Promise<void> {
  await ignoring(["EINVAL"], () => lchown(path, owner, group));
}

/** Gives the files of a folder to an account: they may have belonged to another one before. */
export async function ownFilesIn(folder: string, owner: number): Promise<void> {
  for (const name of await readdir(folder)) await own(join(folder, name), owner);
}

/**
 * Makes a folder and those above it, open to everybody whatever the umask. Node's own `recursive` never returns where the
 * kernel refuses with "no such file", as it does under /proc.
 */
export async function makeFolderPath(path: string): Promise<void> {
  if ((await ignoring(["ENOENT", "ENOTDIR"], () => stat(path)))?.isDirectory() === true) return;
  if (dirname(path) !== path) await makeFolderPath(dirname(path));
  await mkdir(path);
  await chmod(path, 0o755);
}

/** Writes a file so that a reader sees the old text or the new one, nothing between, and never with a wider mode. */
export async function writeAtomically({ path, text, mode, owner, group }: FilePlan): Promise<void> {
  const aside = join(dirname(path), `.${basename(path)}.new`);
  await writeFile(aside, text, { mode: 0o600 });
  await own(aside, owner, group);
  await chmod(aside, mode);
  await rename(aside, path);
}
