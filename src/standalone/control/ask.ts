/** The side of the control socket that commands have. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { MeshError } from "#lib/mesh-error.ts";
import { statePaths } from "../plan/state-paths.ts";
import { onJsonLines, sendJsonLine } from "./lines.ts";
import type { ControlAnswers, ControlReply, ControlRequest } from "./protocol.ts";
import { shortSocketPath } from "./socket-path.ts";

export interface AskOptions {
  readonly onProgress?: ((line: string) => void) | undefined;
  /** Gives up, and hangs up, when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

/** A connection to a running mesh. What was joined over it leaves when it is closed. */
export interface ControlConnection extends Disposable {
  ask<Request extends ControlRequest>(request: Request, options?: AskOptions): Promise<ControlAnswers[Request["kind"]]>;
}

/** Connects to the mesh whose state lies in the folder. One thing is asked at a time. */
export async function connectToMesh(stateFolder: string): Promise<ControlConnection> {
  const socket = await openSocket(statePaths(stateFolder).control);
  let onReply: (reply: ControlReply) => void = () => undefined;
  let onClose: () => void = () => undefined;
  socket.on("error", () => undefined);
  socket.once("close", () => onClose());
  // Both sides are of one release: the runner is the program that asks.
  onJsonLines(socket, (value) => onReply(value as ControlReply));
  return {
    ask<Answer>(request: ControlRequest, { onProgress, signal }: AskOptions = {}): Promise<Answer> {
      const { promise, resolve, reject } = Promise.withResolvers<Answer>();
      const hangUp = () => void socket.destroy();
      signal?.addEventListener("abort", hangUp, { once: true });
      if (signal?.aborted === true) hangUp();
      onClose = () =>
        reject(new MeshError("RUNNER_LOST", "the mesh's runner ended before it answered; see `mizzen ps`"));
      onReply = (reply) => {
        if (reply.kind === "progress") onProgress?.(reply.line);
        else if (reply.kind === "failed") reject(new MeshError(reply.code, reply.message));
        else resolve(reply.answer as Answer);
      };
      sendJsonLine(socket, request);
      return promise.finally(() => signal?.removeEventListener("abort", hangUp));
    },
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

/** Asks one thing over a connection of its own. */
export async function askMesh<Request extends ControlRequest>(
  stateFolder: string,
  request: Request,
  options: AskOptions = {},
): Promise<ControlAnswers[Request["kind"]]> {
  using connection = await connectToMesh(stateFolder);
  return await connection.ask(request, options);
}

async function openSocket(path: string): Promise<Socket> {
  try {
    await using short = await shortSocketPath(path);
    const socket = connect(short.path);
    await once(socket, "connect");
    return socket;
  } catch (cause) {
    throw new MeshError(
      "MESH_NOT_LISTENING",
      "Cannot reach the runner of the mesh: it is starting, ending or was killed; see `mizzen ps`, or run `mizzen up` again",
      { cause },
    );
  }
}
