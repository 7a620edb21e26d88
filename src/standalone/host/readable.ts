/** Whether an account of the mesh may use a file in its own place: a checkout under root's home it may not. */
import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Account } from "../plan/enter.ts";
import { accountsHere, UNMAPPED_ID } from "./user-namespace.ts";

export const READ = 4;
export const EXECUTE = 1;

/** Accounts with no rights of their own: what these may use, everybody may. */
export const ANYBODY: Account = { uid: -1, gid: -1, home: "/" };

/** What the owner, the group and the others may do, of a file or folder. */
export interface Permissions {
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

/** Whether the account has all of the wanted rights. Where there is but one account, nobody is shut out by it. */
export function permits({ uid, gid, mode }: Permissions, account: Account, wanted: number): boolean {
  const here = accountsHere();
  if (account.uid === 0 || here === "one") return true;
  // What belongs to nobody that this namespace knows does not belong to its `nobody`.
  const owns = (own: number, id: number) => own === id && !(here === "many" && id === UNMAPPED_ID);
  const shift = owns(account.uid, uid) ? 6 : owns(account.gid, gid) ? 3 : 0;
  return ((mode >> shift) & wanted) === wanted;
}

/** The first folder on the way to a path, or the path itself, that the account may not use. The path must be real. */
export async function obstacle(path: string, account: Account, wanted: number): Promise<string | undefined> {
  for (const folder of foldersAbove(path)) {
    if (!permits(await stat(folder), account, EXECUTE)) return folder;
  }
  return permits(await stat(path), account, wanted) ? undefined : path;
}

/** Whether all of the accounts may use the file. */
export async function usableBy(path: string, accounts: readonly Account[], wanted: number): Promise<boolean> {
  const obstacles = await Promise.all(accounts.map((account) => obstacle(path, account, wanted)));
  return obstacles.every((found) => found === undefined);
}

/** Large, and as a rule like the folder they are in. */
const NOT_LOOKED_INTO = [".git", "node_modules"];

/** Whether the account may read a file, or a folder with everything in it. The path must be real. */
export async function isReadableTree(path: string, account: Account): Promise<boolean> {
  const isFolder = (await stat(path)).isDirectory();
  if ((await obstacle(path, account, isFolder ? READ | EXECUTE : READ)) !== undefined) return false;
  return !isFolder || (await isReadableInside(path, account));
}

async function isReadableInside(folder: string, account: Account): Promise<boolean> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const isFolder = entry.isDirectory();
    if ((!isFolder && !entry.isFile()) || NOT_LOOKED_INTO.includes(entry.name)) continue;
    const path = join(folder, entry.name);
    if (!permits(await stat(path), account, isFolder ? READ | EXECUTE : READ)) return false;
    if (isFolder && !(await isReadableInside(path, account))) return false;
  }
  return true;
}

function foldersAbove(path: string): string[] {
  const folder = dirname(path);
  return folder === path ? [] : [...foldersAbove(folder), folder];
}
