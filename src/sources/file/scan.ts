/** What there is under the configured paths: files to read and folders to watch. */
import type { Dirent, Stats } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The state of the configured paths at one moment. */
export interface Scan {
  /** Files by path, each with a text that changes when the file does. */
  readonly files: ReadonlyMap<string, string>;
  /** Folders by path, each with a text that tells it from another folder that took its place. */
  readonly folders: ReadonlyMap<string, string>;
  /** Configured paths, and folders in them, that could not be read. */
  readonly failures: ReadonlyMap<string, string>;
}

/** Files whose name says that they hold configuration. */
export function isConfigName(name: string): boolean {
  return /\.(ya?ml|json)$/.test(name);
}

/** Looks at files and folders and all that is in them. Links are followed, names that start with a dot left out. */
export async function scanPaths(paths: readonly string[]): Promise<Scan> {
  const scan: Draft = { files: new Map(), folders: new Map(), failures: new Map() };
  for (const path of paths) {
    const found = await look(path);
    if (typeof found === "string") scan.failures.set(path, found);
    else await add(path, found, { scan, above: new Set() });
  }
  return scan;
}

/** The folder that exists and is nearest above a path, by path and identity: there one learns that the path appears. */
export async function nearestFolder(path: string): Promise<readonly [string, string]> {
  const parent = dirname(path);
  const found = await look(parent);
  if (typeof found === "object" && found.isDirectory()) return [parent, identity(found)];
  return parent === path ? [parent, ""] : nearestFolder(parent);
}

interface Draft {
  readonly files: Map<string, string>;
  readonly folders: Map<string, string>;
  readonly failures: Map<string, string>;
}

interface Visit {
  readonly scan: Draft;
  /** Identities of the folders that lead here: a link to one of them goes in a circle. */
  readonly above: ReadonlySet<string>;
}

async function add(path: string, found: Stats, { scan, above }: Visit): Promise<void> {
  const id = identity(found);
  if (!found.isDirectory()) scan.files.set(path, `${id} ${found.size} ${found.mtimeMs} ${found.ctimeMs}`);
  else if (!above.has(id)) {
    scan.folders.set(path, id);
    await addChildren(path, { scan, above: new Set([...above, id]) });
  }
}

async function addChildren(folder: string, visit: Visit): Promise<void> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    const wanted = entries.filter(({ name }) => !name.startsWith("."));
    await Promise.all(wanted.map((entry) => addChild(join(folder, entry.name), entry, visit)));
  } catch (thrown) {
    visit.scan.failures.set(folder, reasonOf(thrown));
  }
}

async function addChild(path: string, entry: Dirent, visit: Visit): Promise<void> {
  const named = isConfigName(path);
  if (entry.isFile() && !named) return;
  const found = await look(path);
  if (typeof found === "object") {
    if (named || found.isDirectory()) await add(path, found, visit);
  } else if (named && found !== GONE) visit.scan.files.set(path, found);
}

/** Whether there is a folder at the path. */
export async function isFolder(path: string): Promise<boolean> {
  const found = await look(path);
  return typeof found === "object" && found.isDirectory();
}

async function look(path: string): Promise<Stats | string> {
  try {
    return await stat(path);
  } catch (thrown) {
    return reasonOf(thrown);
  }
}

const GONE = "does not exist";
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: GONE,
  ENOTDIR: GONE,
  EACCES: "cannot be read: permission denied",
  ELOOP: "cannot be read: its links go in a circle",
};

/** Why the file system refused, in words that follow a path. */
export function reasonOf(thrown: unknown): string {
  const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
  return REASONS[code] ?? `cannot be read: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
}

/** The time of birth is part of it, because a folder that is made again often gets the number of the one that went. */
function identity({ dev, ino, birthtimeMs }: Stats): string {
  return `${dev}:${ino}:${birthtimeMs}`;
}
