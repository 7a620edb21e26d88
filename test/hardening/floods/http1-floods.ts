/** Floods of HTTP/1, each the counterpart of one of HTTP/2. */
import type { Socket } from "node:net";
import { type PeerTarget, pump, tryOpenPeer } from "../../support/raw-peer.ts";

export interface Http1Flood {
  readonly name: string;
  /** Sends it to a listener until the time is over. */
  readonly run: (target: PeerTarget, path: string, endAt: number) => Promise<void>;
}

const CONNECTIONS = 200;
const REQUESTS_PER_PIECE = 200;

const get = (path: string) => Buffer.from(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
const post = (path: string, headers: string) =>
  Buffer.from(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${headers}\r\n\r\n`);
const repeated = (bytes: Buffer) => Buffer.concat(Array<Buffer>(REQUESTS_PER_PIECE).fill(bytes));

/** The same bytes again and again on one connection after the other. */
function sameAgain(opening: (path: string) => Buffer, piece: (path: string) => Buffer, reads = true) {
  return (target: PeerTarget, path: string, endAt: number) => {
    const again = piece(path);
    return pump(target, () => ({ opening: opening(path), next: () => again, reads }), endAt);
  };
}

/** Many connections that send the opening and then a byte now and then, and read nothing. */
function held(opening: (path: string) => Buffer, { trickle, more }: { trickle?: string; more?: Buffer } = {}) {
  return async (target: PeerTarget, path: string, endAt: number) => {
    const opened = await Promise.all(Array.from({ length: CONNECTIONS }, () => tryOpenPeer(target)));
    const sockets = opened.filter((socket): socket is Socket => socket !== undefined);
    for (const socket of sockets) {
      socket.pause().write(opening(path));
      if (more !== undefined) socket.write(more);
    }
    while (performance.now() < endAt) {
      if (trickle !== undefined) for (const socket of sockets) if (!socket.destroyed) socket.write(trickle);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    for (const socket of sockets) socket.destroy();
  };
}

const NOTHING = () => Buffer.alloc(0);

export const HTTP1_FLOODS: readonly Http1Flood[] = [
  {
    name: "rapid reset",
    run: (target, path, endAt) => pump(target, () => ({ opening: get(path), next: () => undefined }), endAt),
  },
  {
    name: "endless headers",
    run: sameAgain(
      (path) => get(path).subarray(0, -2),
      () => repeated(Buffer.from("x: y\r\n")),
    ),
  },
  { name: "pipelined requests", run: sameAgain(NOTHING, (path) => repeated(get(path))) },
  {
    name: "tiny chunks",
    run: sameAgain(
      (path) => post(path, "Transfer-Encoding: chunked"),
      () => repeated(Buffer.from("1\r\n{\r\n")),
    ),
  },
  { name: "slow reads", run: sameAgain(NOTHING, (path) => repeated(get(path)), false) },
  { name: "slow reads on many connections", run: held((path) => repeated(get(path))) },
  { name: "slow writes of headers", run: held((path) => get(path).subarray(0, -2), { trickle: "x" }) },
  { name: "slow writes of a body", run: held((path) => post(path, "Content-Length: 1000"), { trickle: "{" }) },
  {
    name: "half-sent bodies",
    run: held((path) => post(path, "Content-Length: 1000000"), { more: Buffer.alloc(900_000, 0x20) }),
  },
  { name: "idle connections", run: held(NOTHING) },
];
