/**
 * Whoever starts or removes a mesh holds its lock: a listening socket in the abstract namespace, which the kernel takes
 * back at the very moment its process ends, however that happens.
 */
import { once } from "node:events";
import { createServer } from "node:net";
import { sleep } from "#lib/async/sleep.ts";
import { MeshError } from "#lib/mesh-error.ts";

const POLL_MS = 50;

export interface LockInput {
  readonly id: string;
  /** How long another holder is waited for. */
  readonly timeoutMs: number;
}

/** Takes the lock; it is given back when it is disposed of. */
export async function lockMesh({ id, timeoutMs }: LockInput): Promise<AsyncDisposable> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const server = createServer((socket) => void socket.destroy());
    try {
      await once(server.listen(`\0mizzen-${id}`), "listening");
      return { [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())) };
    } catch (cause) {
      if (!(cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE")) throw cause;
      if (Date.now() >= deadline) {
        throw new MeshError(
          "MESH_BUSY",
          "the mesh is being started or removed by another command; try again when that has ended",
        );
      }
      await sleep(POLL_MS, new AbortController().signal);
    }
  }
}
