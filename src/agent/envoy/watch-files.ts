import { type FSWatcher, watch } from "node:fs";
import { dirname } from "node:path";

const QUIET_MS = 500;

/**
 * Calls back when something changed in the folders of files, once it is quiet. Folders are watched, not files: a file
 * that is replaced, as programs and mounted volumes are, would be lost. Folders that do not exist are left out.
 */
export function watchFiles(files: readonly string[], onChange: () => void, signal: AbortSignal): void {
  let timer: NodeJS.Timeout | undefined;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(onChange, QUIET_MS);
  };
  const watchers = [...new Set(files.map((file) => dirname(file)))].flatMap((folder) => watched(folder, later));
  signal.addEventListener(
    "abort",
    () => {
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
    },
    { once: true },
  );
}

function watched(folder: string, onEvent: () => void): FSWatcher[] {
  try {
    const watcher = watch(folder, { persistent: false }, onEvent);
    watcher.on("error", () => watcher.close());
    return [watcher];
  } catch {
    // It does not exist, and what is not there now is not what Envoy was started with.
    return [];
  }
}
