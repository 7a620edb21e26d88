/** Unix sockets that are there before anything answers on them: whoever connects meanwhile is served a moment later. */
import { once } from "node:events";
import { chmodSync, lstatSync, rmdirSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { dirname } from "node:path";
import { makeFolder } from "#lib/files/make-folder.ts";
import { MeshError } from "#lib/mesh-error.ts";

/** A socket that listens. */
export interface UnixSocket {
  /** Gives the connections to whoever serves them, also those that came before. `failed` is told of those that cannot be had. */
  serve(take: (connection: Socket) => void, failed: (error: Error) => void): void;
  /** No more connections; those that nobody took are cut. */
  close(): void;
}

/** Who may connect: the own user alone. */
const PRIVATE = 0o600;

/** Opens a socket in place of what an earlier run left there; the mode says who can connect. */
export async function openUnixSocket(path: string, mode = PRIVATE): Promise<UnixSocket> {
  const waiting: Socket[] = [];
  let take = (connection: Socket): void => void waiting.push(connection);
  const server = createServer((connection) => take(connection));
  try {
    makeFolder(dirname(path), 0o700);
    makeRoom(path);
    server.listen(path);
    await once(server, "listening");
    chmodSync(path, mode);
  } catch (cause) {
    server.close();
    throw new MeshError("SOCKET_NOT_SERVED", `Cannot serve on socket ${path}`, { cause });
  }
  let tell: (error: Error) => void = () => undefined;
  // Such as no descriptor being left: others may come later.
  server.on("error", (error) => tell(error));
  return {
    serve: (taker, failed) => {
      take = taker;
      tell = failed;
      for (const connection of waiting.splice(0)) taker(connection);
    },
    close: () => {
      server.close();
      for (const connection of waiting.splice(0)) connection.destroy();
    },
  };
}

/**
 * Opens a socket that only the own account can reach, in a folder of its own. Throws when somebody else owns or can enter the folder,
 * since whoever owns it could put another socket there.
 */
export async function openPrivateSocket(path: string): Promise<UnixSocket> {
  const folder = dirname(path);
  makeFolder(folder, 0o700);
  const { uid, mode } = lstatSync(folder);
  if (uid !== process.getuid?.() || (mode & 0o077) !== 0)
    throw new MeshError(
      "SOCKET_NOT_SERVED",
      `Cannot serve on socket ${path}: its folder must be private to this account`,
    );
  return openUnixSocket(path);
}

/**
 * Removes what is in the place of a socket: one of an earlier run, or the empty folder that a container engine makes where it
 * was to mount one that is not there. Throws when it cannot.
 */
export function makeRoom(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) rmdirSync(path);
  else rmSync(path, { force: true });
}

/** A socket that is opened while others go on; with undefined it never is. */
export function laterSocket(opening: Promise<UnixSocket | undefined>): UnixSocket {
  return {
    serve: (take, failed) => void opening.then((socket) => socket?.serve(take, failed)),
    close: () => void opening.then((socket) => socket?.close()),
  };
}

/** True when somebody answers on the socket. */
export function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const settle = (served: boolean) => {
      socket.destroy();
      resolve(served);
    };
    socket.on("connect", () => settle(true));
    socket.on("error", () => settle(false));
  });
}
