import { type FileHandle, open } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

export interface ShortPath extends AsyncDisposable {
  readonly path: string;
}

/** The kernel takes at most this many bytes, the final zero included. */
const MAX_SOCKET_PATH = 107;

/** A path for a unix socket that the kernel takes, however deep its folder lies. Good until it is disposed of. */
export async function shortSocketPath(path: string): Promise<ShortPath> {
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH) return { path, [Symbol.asyncDispose]: async () => undefined };
  const folder: FileHandle = await open(dirname(path), "r");
  return {
    path: join("/proc/self/fd", String(folder.fd), basename(path)),
    [Symbol.asyncDispose]: () => folder.close(),
  };
}
