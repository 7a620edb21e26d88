/**
 * Tells when files change: when they are written, replaced by renaming, appear, go away, or when a link on the way to
 * them points elsewhere. Kubernetes changes mounted secrets in the last way:
 *
 *   certs/key.pem -> ..data/key.pem      certs/..data -> ..2026_11_16      certs/..2026_11_16/key.pem
 *
 * so each folder that such a chain passes through is watched, for the names that are in it.
 */
import { type FSWatcher, lstatSync, readlinkSync, watch } from "node:fs";
import { dirname, join, parse, resolve, sep } from "node:path";

export interface FileWatchOptions {
  /** From the first sign of a change to the call: files that belong together are seldom written at one moment. */
  readonly debounceMs: number;
  readonly onChange: () => void;
  /** A folder cannot be watched; it is tried again after a while. */
  readonly onFailure: (thrown: unknown) => void;
}

const RETRY_MS = 1_000;
const MOST_LINKS = 40;

/** Watches until the returned function is called. */
export function watchFiles(files: readonly string[], options: FileWatchOptions): () => void {
  const watch = new FileWatch(files, options);
  watch.look();
  return () => watch.close();
}

class FileWatch {
  readonly #files: readonly string[];
  readonly #options: FileWatchOptions;
  readonly #watchers = new Map<string, FSWatcher>();
  #names: ReadonlyMap<string, ReadonlySet<string>> = new Map();
  #timer: NodeJS.Timeout | undefined;

  constructor(files: readonly string[], options: FileWatchOptions) {
    this.#files = files;
    this.#options = options;
  }

  /** Watches the folders that the files are reached through now. */
  look(): void {
    this.#names = namesByFolder(this.#files);
    for (const folder of [...this.#watchers.keys()]) if (!this.#names.has(folder)) this.#drop(folder);
    for (const folder of this.#names.keys()) if (!this.#watchers.has(folder)) this.#add(folder);
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const folder of [...this.#watchers.keys()]) this.#drop(folder);
  }

  #add(folder: string): void {
    try {
      const watcher = watch(folder, { persistent: false }, (_, name) => {
        // A folder that moved away or is gone is told under its own name.
        const own = parse(folder).base === name;
        if (own) this.#drop(folder);
        if (own || name === null || this.#names.get(folder)?.has(name)) this.#soon(this.#options.debounceMs);
      });
      watcher.on("error", (thrown) => {
        this.#drop(folder);
        this.#failed(thrown);
      });
      this.#watchers.set(folder, watcher);
    } catch (thrown) {
      this.#failed(thrown);
    }
  }

  #drop(folder: string): void {
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
  }

  #failed(thrown: unknown): void {
    this.#options.onFailure(thrown);
    this.#soon(RETRY_MS);
  }

  #soon(ms: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.look();
      this.#options.onChange();
    }, ms);
  }
}

/** The names to look out for, by the folder that they are in. */
function namesByFolder(files: readonly string[]): ReadonlyMap<string, ReadonlySet<string>> {
  const names = new Map<string, Set<string>>();
  const add = (path: string) => {
    const { dir, base } = parse(path);
    names.set(dir, (names.get(dir) ?? new Set()).add(base));
  };
  for (const file of files) for (const path of pathsOnTheWay(resolve(file))) add(path);
  return names;
}

/** Each link that the path passes through, the file at its end or the first part that does not exist, and their folders. */
function pathsOnTheWay(file: string): readonly string[] {
  const found: string[] = [];
  let links = 0;
  let here: string = sep;
  let rest = file.split(sep).filter((part) => part !== "");
  while (rest.length > 0) {
    const path = join(here, rest[0] ?? "");
    const kind = kindOf(path);
    if (kind === "link" && links++ < MOST_LINKS) {
      found.push(path);
      rest = [
        ...resolve(here, readlink(path))
          .split(sep)
          .filter((part) => part !== ""),
        ...rest.slice(1),
      ];
      here = sep;
    } else if (kind === "folder" && rest.length > 1) {
      here = path;
      rest = rest.slice(1);
    } else {
      found.push(path);
      // A folder that is renamed and made again is noticed by the one above it.
      if (here !== sep && dirname(here) !== sep) found.push(here);
      break;
    }
  }
  return found;
}

function kindOf(path: string): "link" | "folder" | "other" {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats?.isSymbolicLink()) return "link";
  return stats?.isDirectory() ? "folder" : "other";
}

function readlink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return path; // replaced this moment: the change is told, and looked at again
  }
}
