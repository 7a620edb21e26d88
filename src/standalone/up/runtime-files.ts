/** Puts programs and sources where the accounts of the mesh can read them, when they cannot in their own place. */
import { createHash } from "node:crypto";
import { chmod, constants, copyFile, link, mkdir, realpath, rename, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { MeshError } from "#lib/mesh-error.ts";
import { ignoring } from "../host/ignoring.ts";
import { ANYBODY, EXECUTE, permits, READ, usableBy } from "../host/readable.ts";
import type { Account } from "../plan/enter.ts";
import { mirrorFolder } from "./mirror-folder.ts";

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

/** Sources of an app have less; what has more is somebody's home, or the whole machine. */
const MAX_COPIED_FILES = 20_000;

export interface WorkingFolder {
  readonly path: string;
  /** Whoever runs in it. */
  readonly accounts: readonly Account[];
  readonly runtimeFolder: string;
  readonly maxFiles?: number;
}

/** A folder that all of the accounts can enter and list, as it is now: the folder itself, or a copy of it. */
export async function placeWorkingFolder(input: WorkingFolder): Promise<string> {
  const { path, accounts, runtimeFolder, maxFiles = MAX_COPIED_FILES } = input;
  const real = await realpath(path);
  if (await usableBy(real, accounts, READ | EXECUTE)) return real;
  const target = join(runtimeFolder, keyOf([real]), basename(real));
  await makeOpenFolder(dirname(runtimeFolder), runtimeFolder, dirname(target));
  let files = 0;
  const count = () => {
    if (++files > maxFiles) throw tooLarge(real);
  };
  await mirrorFolder({ source: real, target, count });
  return target;
}

function tooLarge(folder: string): MeshError {
  return new MeshError(
    "WORKING_DIR_TOO_LARGE",
    `Cannot use "${folder}" as a working folder: its users may not read it, and it is too large to copy; open it to them`,
  );
}

/** Hard links cost nothing, but reach neither across file systems nor where the kernel protects them. */
async function tryLink(real: string, target: string): Promise<boolean> {
  const done = await ignoring(["EXDEV", "EPERM", "EMLINK", "EEXIST"], () => link(real, target).then(() => true));
  return done ?? (await ignoring(["ENOENT"], () => stat(target))) !== undefined;
}

/** Makes folders that everybody may enter, but not list. Of one that was there before nothing else changes. */
async function makeOpenFolder(...folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    await mkdir(folder, { recursive: true, mode: 0o711 });
    const { mode } = await stat(folder);
    if ((mode & OPEN) !== OPEN) await chmod(folder, (mode & 0o7777) | OPEN);
  }
}

/** To be entered by everybody. */
const OPEN = 0o111;

function keyOf(parts: readonly string[]): string {
  return createHash("sha256").update(parts.join("\0")).digest("hex").slice(0, 16);
}
