/** A log file that is rotated: when it is full it gets a time in its name, and old ones are removed. */
import { appendFileSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";

/** When to rotate, and what to keep; 0 is no limit. */
export interface RotationLimits {
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  readonly maxBackups: number;
}

/** Gives a function that writes whole lines. Throws when the file cannot be written. */
export function rotatingFile(path: string, limits: RotationLimits, now: () => Date = () => new Date()) {
  mkdirSync(dirname(path), { recursive: true });
  appendFileSync(path, "");
  let size = statSync(path).size;
  return (line: string): void => {
    const bytes = Buffer.byteLength(line);
    if (size > 0 && limits.maxBytes > 0 && size + bytes > limits.maxBytes) {
      renameSync(path, backupPath(path, now()));
      removeOld(path, limits, now());
      size = 0;
    }
    appendFileSync(path, line);
    size += bytes;
  };
}

/** `agent.log` becomes `agent-2026-01-02T03-04-05.678.log`. */
function backupPath(path: string, time: Date): string {
  const { stem, extension } = partsOf(path);
  return join(dirname(path), `${stem}-${time.toISOString().replaceAll(":", "-").replace("Z", "")}${extension}`);
}

function removeOld(path: string, { maxAgeMs, maxBackups }: RotationLimits, now: Date): void {
  const { stem, extension } = partsOf(path);
  const backups = readdirSync(dirname(path))
    .filter((name) => name.startsWith(`${stem}-`) && name.endsWith(extension) && timeOf(name, stem, extension) > 0)
    .sort()
    .reverse();
  for (const [index, name] of backups.entries()) {
    const tooOld = maxAgeMs > 0 && now.getTime() - timeOf(name, stem, extension) > maxAgeMs;
    if (tooOld || (maxBackups > 0 && index >= maxBackups)) rmSync(join(dirname(path), name), { force: true });
  }
}

/** 0 for a name that is not one of a backup. */
function timeOf(name: string, stem: string, extension: string): number {
  const text = name.slice(stem.length + 1, name.length - extension.length);
  const time = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}$/.test(text)
    ? Date.parse(`${text.replace(/T(\d\d)-(\d\d)-/, "T$1:$2:")}Z`)
    : Number.NaN;
  return Number.isNaN(time) ? 0 : time;
}

function partsOf(path: string): { readonly stem: string; readonly extension: string } {
  const extension = extname(path);
  return { stem: basename(path, extension), extension };
}
