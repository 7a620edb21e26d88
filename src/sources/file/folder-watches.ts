/**
 * A plain watch on each folder. A recursive one of Node loses writes after a file was replaced by renaming, and follows a
 * folder that was moved away instead of the one that took its place.
 */
import { type FSWatcher, watch } from "node:fs";
import { join } from "node:path";
import { errorText } from "#lib/mesh-error.ts";

export interface FolderWatchesOptions {
  /** A path in a watched folder changed; undefined when it is not known which. */
  readonly onChange: (path: string | undefined) => void;
  /** A folder cannot be watched, so its changes are seen late. */
  readonly onFailure: (folder: string, reason: string) => void;
}

export class FolderWatches implements Disposable {
  readonly #options: FolderWatchesOptions;
  readonly #watches = new Map<string, { readonly identity: string; readonly watcher: FSWatcher | undefined }>();

  constructor(options: FolderWatchesOptions) {
    this.#options = options;
  }

  /**
   * Watches exactly these folders, given by path and identity. Returns whether there is a new watch: what happened in
   * its folder until now went unseen.
   */
  update(folders: ReadonlyMap<string, string>): boolean {
    for (const [folder, { identity, watcher }] of this.#watches) {
      if (folders.get(folder) === identity) continue;
      watcher?.close();
      this.#watches.delete(folder);
    }
    const added = [...folders].filter(([folder]) => !this.#watches.has(folder));
    for (const [folder, identity] of added) this.#watches.set(folder, { identity, watcher: this.#open(folder) });
    return added.length > 0;
  }

  /** Whether the path is a watched folder. */
  has(path: string): boolean {
    return this.#watches.has(path);
  }

  [Symbol.dispose](): void {
    this.update(new Map());
  }

  #open(folder: string): FSWatcher | undefined {
    try {
      const watcher = watch(folder, (_, name) =>
        this.#options.onChange(name === null ? undefined : join(folder, name)),
      );
      watcher.on("error", () => this.#options.onChange(undefined));
      return watcher;
    } catch (thrown) {
      this.#options.onFailure(folder, errorText(thrown));
      return undefined;
    }
  }
}
