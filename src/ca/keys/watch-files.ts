import { unwatchFile, watchFile } from "node:fs";

export interface WatchFilesInput {
  readonly files: readonly string[];
  readonly intervalMs: number;
  /** Called when the files changed and then were quiet for an interval, and once at the beginning. */
  readonly onChange: () => void;
}

/**
 * Watches single files until the signal aborts. By comparing their state in intervals, not by file system events: that
 * also sees files behind links that are switched (a mounted Secret) and folders that are removed and made again.
 */
export function watchFiles({ files, intervalMs, onChange }: WatchFilesInput, signal: AbortSignal): void {
  if (signal.aborted) return;
  let quiet: NodeJS.Timeout | undefined;
  const onFileChange = () => {
    clearTimeout(quiet);
    quiet = setTimeout(onChange, intervalMs);
  };
  for (const file of files) watchFile(file, { interval: intervalMs, persistent: false }, onFileChange);
  // What changed between the caller's first look at the files and ours is no change to the watcher.
  onFileChange();
  signal.addEventListener("abort", () => {
    clearTimeout(quiet);
    for (const file of files) unwatchFile(file, onFileChange);
  });
}
