/**
 * Folders for what people name. Node's own `recursive` never returns where the kernel refuses with "no such file" though the folder
 * above is there, as it does under /proc.
 */
import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/** Makes a folder and those above it, each with the mode. Gives whether it was not there. Throws where none can be. */
export function makeFolder(path: string, mode = 0o777): boolean {
  const there = statSync(path, { throwIfNoEntry: false });
  if (there?.isDirectory() === true) return false;
  const above = dirname(path);
  if (there === undefined && above !== path) makeFolder(above, mode);
  try {
    mkdirSync(path, mode);
    return true;
  } catch (problem) {
    // Somebody was faster.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return false;
    throw isMissing(problem) ? new Error(`no folder can be made in "${above}"`, { cause: problem }) : problem;
  }
}

function isMissing(problem: unknown): boolean {
  return problem instanceof Error && "code" in problem && problem.code === "ENOENT";
}
