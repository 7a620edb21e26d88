/** Keeps a copy of a folder in step with it, without disturbing those who use the copy. */
import { chmod, copyFile, lstat, mkdir, readdir, readlink, rename, rm, symlink, utimes } from "node:fs/promises";
import { basename, join } from "node:path";
import { ignoring } from "../host/ignoring.ts";

/** Not part of an app. */
const LEFT_OUT = [".git"];

export interface MirrorInput {
  readonly source: string;
  readonly target: string;
  /** Called for each file and folder; throws when there are too many. */
  readonly count: () => void;
}

/** Makes the target equal to the source, readable for everybody. Files that did not change are not touched; others are exchanged as a whole. */
export async function mirrorFolder({ source, target, count }: MirrorInput): Promise<void> {
  count();
  await mkdir(target, { recursive: true });
  await chmod(target, 0o755);
  const entries = (await readdir(source, { withFileTypes: true })).filter(({ name }) => !LEFT_OUT.includes(name));
  const wanted = new Set(entries.map(({ name }) => name));
  for (const name of await readdir(target)) {
    if (!wanted.has(name)) await rm(join(target, name), { recursive: true, force: true });
  }
  for (const entry of entries) {
    const [from, to] = [join(source, entry.name), join(target, entry.name)];
    if (entry.isDirectory()) {
      await mirrorFolder({ source: from, target: to, count });
      continue;
    }
    count();
    if (entry.isSymbolicLink()) await mirrorLink(from, to);
    else if (entry.isFile()) await mirrorFile(from, to);
  }
}

async function mirrorFile(from: string, to: string): Promise<void> {
  const info = await lstat(from);
  const old = await ignoring(["ENOENT"], () => lstat(to));
  if (old?.isFile() && old.size === info.size && old.mtimeMs === info.mtimeMs) return;
  if (old?.isDirectory()) await rm(to, { recursive: true });
  const aside = join(to, "..", `.${basename(to)}.new`);
  await copyFile(from, aside);
  await chmod(aside, info.mode & 0o100 ? 0o755 : 0o644);
  await utimes(aside, info.atime, info.mtime);
  await rename(aside, to);
}

async function mirrorLink(from: string, to: string): Promise<void> {
  const goal = await readlink(from);
  await rm(to, { recursive: true, force: true });
  await symlink(goal, to);
}
