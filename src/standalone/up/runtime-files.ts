/** Puts programs and sources where the accounts of the mesh can read them, when they cannot in their own place. */
import { createHash } from "node:crypto";
import { chmod, constants, copyFile, cp, link, mkdir, readdir, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ignoring } from "../host/ignoring.ts";
import type { Account } from "../plan/enter.ts";
import { isReadableTree, permits, usableBy } from "./readable.ts";

/** Accounts with no rights of their own: what these may use, everybody may. */
const ANYBODY: Account = { uid: -1, gid: -1, home: "/" };

/** A path under which every account has the wanted rights: the file's own when that will do, else one for it aside. */
export async function placeFile(path: string, wanted: number, runtimeFolder: string): Promise<string> {
  const real = await realpath(path);
  if (await usableBy(real, [ANYBODY], wanted)) return real;
  const info = await stat(real);
  const key = keyOf([real, String(info.size), String(info.mtimeMs), String(info.ino)]);
  const target = join(runtimeFolder, key, basename(real));
  await makeOpenFolder(dirname(runtimeFolder), runtimeFolder, dirname(target));
  const linked = permits(info, ANYBODY, wanted) && (await tryLink(real, target));
  if (!linked) {
    const aside = `${target}.new`;
    await copyFile(real, aside, constants.COPYFILE_FICLONE);
    await chmod(aside, 0o755);
    await rename(aside, target);
  }
  return target;
}

/** A folder that all of the accounts can read, as it is now: the folder itself, or a copy of it. */
export async function placeWorkingFolder(
  path: string,
  accounts: readonly Account[],
  runtimeFolder: string,
): Promise<string> {
  const real = await realpath(path);
  const readable = await Promise.all(accounts.map((account) => isReadableTree(real, account)));
  if (!readable.includes(false)) return real;
  const target = join(runtimeFolder, keyOf([real]), basename(real));
  await makeOpenFolder(dirname(runtimeFolder), runtimeFolder, dirname(target));
  await rm(target, { recursive: true, force: true });
  await cp(real, target, { recursive: true, verbatimSymlinks: true, filter: (source) => basename(source) !== ".git" });
  await openTree(target);
  return target;
}

/** Hard links cost nothing, but reach neither across file systems nor where the kernel protects them. */
async function tryLink(real: string, target: string): Promise<boolean> {
  const done = await ignoring(["EXDEV", "EPERM", "EMLINK", "EEXIST"], () => link(real, target).then(() => true));
  return done ?? (await ignoring(["ENOENT"], () => stat(target))) !== undefined;
}

async function openTree(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await openTree(path);
    else if (entry.isFile()) await chmod(path, (await stat(path)).mode & 0o100 ? 0o755 : 0o644);
  }
}

async function makeOpenFolder(...folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    await mkdir(folder, { recursive: true });
    await chmod(folder, 0o711);
  }
}

function keyOf(parts: readonly string[]): string {
  return createHash("sha256").update(parts.join("\0")).digest("hex").slice(0, 16);
}
