/** Finds what a workload's command would run, before anything is started. */
import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { ignoring } from "../host/ignoring.ts";
import { ANYBODY, EXECUTE, usableBy } from "../host/readable.ts";
import type { Account } from "../plan/enter.ts";

export interface CommandSearch {
  readonly command: string;
  readonly workingDir: string;
  /** Folders with a colon between them. */
  readonly path: string;
  readonly account: Account;
}

/** Undefined when the account can run it; else what is wrong. */
export async function commandProblem({
  command,
  workingDir,
  path,
  account,
}: CommandSearch): Promise<string | undefined> {
  const folders = command.includes("/") ? [workingDir] : path.split(":");
  for (const folder of folders) {
    const file = await ignoring(["ENOENT", "ENOTDIR", "ELOOP"], () => realpath(resolve(folder, command)));
    if (file === undefined || !(await stat(file)).isFile()) continue;
    if (await usableBy(file, [account], EXECUTE)) return undefined;
    if (command.includes("/"))
      return `"${resolve(folder, command)}" may not be executed by ${account.uid === ANYBODY.uid ? "a user of its own" : `uid ${account.uid}`}`;
  }
  const where = command.includes("/") ? `as "${resolve(workingDir, command)}"` : `in ${path}`;
  return `command "${command}" is not found ${where}`;
}
