/** The side of the control socket that the runner has. */
import { once } from "node:events";
import { chmod, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { onJsonLines, sendJsonLine } from "./lines.ts";
import type { ControlReply, ControlRequest } from "./protocol.ts";
import { shortSocketPath } from "./socket-path.ts";

/** One request as its handler sees it. */
export interface ControlSession {
  progress(line: string): void;
  /** Aborts when whoever asked is gone. */
  readonly gone: AbortSignal;
}

export interface ControlInput {
  readonly path: string;
  /** Carries a request out; resolves to the answer. */
  readonly handle: (request: ControlRequest, session: ControlSession) => Promise<unknown>;
  readonly log: Logger;
}

/** Listens; returns the way to stop, which ends open connections after their last words. */
export async function serveControl({ path, handle, log }: ControlInput): Promise<() => void> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    const gone = new AbortController();
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      open.delete(socket);
      gone.abort();
    });
    onJsonLines(socket, (value) => void answer(socket, gone.signal, value));
  });
  const answer = async (socket: Socket, gone: AbortSignal, value: unknown) => {
    const tell = (reply: ControlReply) => sendJsonLine(socket, reply);
    if (!isRequest(value)) {
      tell({ kind: "failed", code: "CONTROL_UNKNOWN", message: "the mesh does not know this request" });
      return;
    }
    try {
      tell({
        kind: "done",
        answer: await handle(value, { progress: (line) => tell({ kind: "progress", line }), gone }),
      });
    } catch (error) {
      if (!(error instanceof MeshError)) log.error("a request failed", { kind: value.kind, reason: errorText(error) });
      tell({
        kind: "failed",
        code: error instanceof MeshError ? error.code : "INTERNAL",
        message: errorText(error),
      });
    }
  };
  await rm(path, { force: true });
  await using short = await shortSocketPath(path);
  // Between the two lines below nobody else may connect: the socket is made by `listen` itself, under this mask.
  const mask = process.umask(0o177);
  server.listen(short.path);
  process.umask(mask);
  await once(server, "listening");
  await chmod(path, 0o600);
  return () => {
    server.close();
    for (const socket of open) socket.destroySoon();
  };
}

function isRequest(value: unknown): value is ControlRequest {
  return typeof value === "object" && value !== null && "kind" in value && typeof value.kind === "string";
}
