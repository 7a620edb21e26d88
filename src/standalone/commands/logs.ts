/** What a process of the mesh printed. */
import { watch } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { MeshError } from "#lib/mesh-error.ts";
import type { MemberStatus } from "../status/status.ts";

/** The log file of a member's app, or of its proxy. A gateway has only a proxy. */
export function logFile({ name, kind, logs }: MemberStatus, proxy: boolean): string {
  const file = proxy || kind === "gateway" ? logs.proxy : logs.app;
  if (file === undefined) throw new MeshError("NO_PROXY", `"${name}" has no proxy: leave out --proxy`);
  return file;
}

export interface LogInput {
  readonly file: string;
  readonly follow: boolean;
  readonly write: (chunk: Buffer) => void;
}

/** Prints the log, and with `follow` what is added to it until the signal aborts. */
export async function printLog({ file, follow, write }: LogInput, signal: AbortSignal): Promise<void> {
  const handle = await openLog(file);
  try {
    let position = await printFrom(handle, 0, write);
    if (!follow) return;
    for await (const _ of changesOf(file, signal)) {
      const { size } = await handle.stat();
      // A file that got shorter was begun anew.
      position = await printFrom(handle, size < position ? 0 : position, write);
    }
  } finally {
    await handle.close();
  }
}

async function openLog(file: string): Promise<FileHandle> {
  try {
    return await open(file, "r");
  } catch (cause) {
    throw new MeshError("LOG_MISSING", "There is no log yet: the process has not been started", { cause });
  }
}

async function printFrom(handle: FileHandle, start: number, write: (chunk: Buffer) => void): Promise<number> {
  let position = start;
  for (;;) {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(65_536), 0, 65_536, position);
    if (bytesRead === 0) return position;
    write(buffer.subarray(0, bytesRead));
    position += bytesRead;
  }
}

/** Yields at once, and then whenever the file may have changed. */
async function* changesOf(file: string, signal: AbortSignal): AsyncGenerator<void> {
  let wake = Promise.withResolvers<void>();
  const touch = () => wake.resolve();
  const watcher = watch(file, touch);
  signal.addEventListener("abort", touch, { once: true });
  try {
    while (!signal.aborted) {
      yield;
      await wake.promise;
      wake = Promise.withResolvers<void>();
    }
  } finally {
    watcher.close();
    signal.removeEventListener("abort", touch);
  }
}
