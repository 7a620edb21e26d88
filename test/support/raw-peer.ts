/** A peer that writes bytes, reads or does not read, and starts again when it is cut off. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

export interface PeerTarget {
  readonly port: number;
  readonly isTls: boolean;
  /** Offered in the TLS handshake. */
  readonly protocol?: "h2" | "http/1.1";
}

const HOST = "127.0.0.1";

/** An open connection; rejects when it is refused. */
async function openPeer({ port, isTls, protocol = "h2" }: PeerTarget): Promise<Socket> {
  const socket = isTls
    ? connectTls({ host: HOST, port, rejectUnauthorized: false, ALPNProtocols: [protocol] })
    : connect({ host: HOST, port });
  socket.setNoDelay(true);
  await once(socket, isTls ? "secureConnect" : "connect");
  socket.on("error", () => undefined);
  return socket;
}

/** The same; undefined when it is refused or cut off. */
export function tryOpenPeer(target: PeerTarget): Promise<Socket | undefined> {
  return openPeer(target).catch(() => undefined);
}

export interface Pump {
  /** Sent first on each connection. */
  readonly opening: Buffer;
  /** What follows, piece by piece; undefined when there is no more. */
  readonly next: (index: number) => Buffer | undefined;
  /** False: what the server answers stays unread. */
  readonly reads?: boolean;
}

/** Writes as fast as the other side reads, on one connection after the other, until the time is over. */
export async function pump(target: PeerTarget, source: (connection: number) => Pump, endAt: number): Promise<void> {
  const over = AbortSignal.timeout(Math.max(0, Math.ceil(endAt - performance.now())));
  for (let connection = 0; performance.now() < endAt; connection++) {
    const socket = await tryOpenPeer(target);
    if (socket === undefined) continue;
    const { opening, next, reads = true } = source(connection);
    const closed = new AbortController();
    socket.on("close", () => closed.abort());
    if (reads) socket.resume();
    else socket.pause();
    socket.write(opening);
    for (let index = 0; performance.now() < endAt && !socket.destroyed; index++) {
      const piece = next(index);
      if (piece === undefined) break;
      if (!socket.write(piece)) await drained(socket, AbortSignal.any([over, closed.signal]));
    }
    socket.destroy();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function drained(socket: Socket, signal: AbortSignal): Promise<void> {
  await once(socket, "drain", { signal }).catch(() => undefined); // the time is over, or the connection
}
