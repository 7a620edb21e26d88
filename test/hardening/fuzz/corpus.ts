/** The inputs that the repository keeps, one file each: those that reach something, and those that were findings once. */
import { createHash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

export const FOLDER = import.meta.dirname;
/** All corpora together stay below a megabyte. */
export const MAX_CORPUS_BYTES = 48 * 1024;
/** Begins the name of a file that was a finding. Such files are never removed. */
const REGRESSION = "regression-";

/** All targets by name. */
export function targetNames(): readonly string[] {
  return globSync("*.fuzz.ts", { cwd: FOLDER })
    .map((file) => basename(file, ".fuzz.ts"))
    .sort();
}

/** Inputs of a target, by file name. */
export function readCorpus(name: string): ReadonlyMap<string, Buffer> {
  const files = globSync("*", { cwd: folderOf(name) }).sort();
  return new Map(files.map((file) => [file, readFileSync(join(folderOf(name), file))]));
}

/** Makes these the inputs of a target. Regressions stay, and so do seeds, which have a readable name. */
export function writeCorpus(name: string, inputs: readonly Uint8Array[]): void {
  mkdirSync(folderOf(name), { recursive: true });
  const wanted = new Map(inputs.map((input) => [hashOf(input), input]));
  for (const [file, bytes] of readCorpus(name)) {
    const isKept = !/^[0-9a-f]{12}$/.test(file);
    if (isKept) wanted.delete(hashOf(bytes));
    else if (!wanted.delete(file)) rmSync(join(folderOf(name), file));
  }
  for (const [file, input] of wanted) writeFileSync(join(folderOf(name), file), input);
}

/** Keeps a finding. Returns its file. */
export function writeRegression(name: string, input: Uint8Array): string {
  mkdirSync(folderOf(name), { recursive: true });
  const file = join(folderOf(name), REGRESSION + hashOf(input));
  writeFileSync(file, input);
  return file;
}

function folderOf(name: string): string {
  return join(FOLDER, "corpus", name);
}

function hashOf(input: Uint8Array): string {
  return createHash("sha256").update(input).digest("hex").slice(0, 12);
}
