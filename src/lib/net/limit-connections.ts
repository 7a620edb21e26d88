/** Limits what the peers of an HTTP/1 server can occupy and cause. */
import type { Server as HttpServer, IncomingMessage, ServerResponse } from "node:http";
import type { Server as HttpsServer } from "node:https";
import type { Server, Socket } from "node:net";
import { type Admission, type AdmittedConnection, CONNECTION_BYTES } from "../admission/admission.ts";
import { Turns } from "./turns.ts";

/** A larger response that its client does not read counts as this much, so that a few large ones find room. */
const MAX_COUNTED_RESPONSE_BYTES = 6 * 1024 * 1024;

/** Node's limit. */
const MAX_HEADER_BYTES = 16 * 1024;
/** Beyond the body that the headers announce; no client of ours sends its next request before the answer. */
const MAX_EXCESS_BYTES = 2 * 1024;

/** Of every HTTP/1 server; a complete request has a limit of its own in each of them. */
export const HTTP_TIMEOUTS = {
  headersTimeout: 10_000,
  /** How often the timeouts of requests are checked. */
  connectionsCheckingInterval: 2_000,
} as const;
/** A connection with a request on which nothing moves for so long is closed: its client does not read. */
export const STALLED_MS = 60_000;

export interface ConnectionRules {
  readonly admission: Admission;
  /** A request that announces a larger body is cut before the body is read. */
  readonly maxBodyBytes: number;
}

export interface LimitedConnections {
  /** So many bytes of the request's body are kept. */
  keeps(request: IncomingMessage, bytes: number): void;
}

interface Place {
  readonly admitted: AdmittedConnection;
  readonly baseBytes: number;
  hasRequest: boolean;
}

/**
 * Gives each connection of the server a place, which it keeps until it closes: HTTP/1 callers do not introduce themselves.
 * Call it when the server has its listeners. From then on they get one TLS handshake, and one request, per turn of the
 * event loop, and one request of a connection at a time.
 */
export function limitConnections(
  server: HttpServer | HttpsServer,
  { admission, maxBodyBytes }: ConnectionRules,
): LimitedConnections {
  const places = new Map<string, Place>();
  const turns = new Turns();
  const isTls = "setSecureContext" in server;
  const isLast = "maxRequestsPerSocket" in server && server.maxRequestsPerSocket === 1;
  const enter = replaceListener(server, "connection");
  /** The server does not know these yet, and could not close them. */
  const waiting = new Set<Socket>();
  closesToo(server, waiting);
  server.on("connection", (socket: Socket) => {
    const admitted = admission.connection(socket.remoteAddress, () => socket.destroy());
    const place = { admitted, baseBytes: CONNECTION_BYTES.http1, hasRequest: false };
    const key = keyOf(socket);
    places.set(key, place);
    waiting.add(socket);
    socket.on("close", () => {
      waiting.delete(socket);
      if (places.get(key) === place) places.delete(key);
      admitted.close();
    });
    admitted.resize(place.baseBytes);
    if (isTls) afterFirstBytes(socket, () => startTls(socket, admitted));
    else startHttp(socket, admitted);
  });
  const startTls = (socket: Socket, place: AdmittedConnection) =>
    turns.run(() => {
      if (socket.destroyed) return;
      place.resize(CONNECTION_BYTES.tls);
      waiting.delete(socket);
      enter(socket);
    });
  const serve = isTls ? replaceListener(server, "secureConnection") : enter;
  const startHttp = (socket: Socket, place: AdmittedConnection) =>
    afterHeaders(socket, ({ announced, excess }) => {
      if (announced === undefined || announced > maxBodyBytes) return place.refuse("invalid");
      if (excess > MAX_EXCESS_BYTES) return place.refuse("pipelined");
      turns.run(() => {
        if (socket.destroyed) return;
        waiting.delete(socket);
        serve(socket);
        socket.resume();
      });
    });
  if (isTls)
    server.on("secureConnection", (socket: Socket) => {
      const place = places.get(keyOf(socket));
      if (place === undefined) socket.destroy();
      else {
        waiting.add(socket);
        socket.on("close", () => waiting.delete(socket));
        startHttp(socket, place.admitted);
      }
    });
  server.on("dropRequest", ({ socket }: IncomingMessage) => places.get(keyOf(socket))?.admitted.refuse("pipelined"));
  const handle = replaceListener(server, "request");
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    const place = places.get(keyOf(request.socket));
    if (place === undefined || request.socket.destroyed) return;
    if (place.hasRequest) place.admitted.refuse("pipelined");
    else if (request.headers["transfer-encoding"] !== undefined || lengthOf(request) > maxBodyBytes)
      place.admitted.refuse("invalid");
    else {
      occupy(place, response);
      // Node parses all requests of a read at once: after the last one of a connection, nothing more is read.
      if (isLast && lengthOf(request) === 0) request.socket.pause();
      turns.run(() => {
        if (!request.socket.destroyed) handle(request, response);
      });
    }
  });
  return {
    keeps: (request, bytes) => {
      const place = places.get(keyOf(request.socket));
      place?.admitted.resize(place.baseBytes + bytes);
    },
  };
}

/** Counts a request, and what of its response its client does not read. */
function occupy(place: Place, response: ServerResponse): void {
  const { admitted, baseBytes } = place;
  place.hasRequest = true;
  admitted.renew();
  response.on("prefinish", () =>
    admitted.resize(baseBytes + Math.min(response.writableLength, MAX_COUNTED_RESPONSE_BYTES)),
  );
  response.on("close", () => {
    place.hasRequest = false;
    admitted.resize(baseBytes);
  });
}

/** Closes further connections with the idle ones of the server, which `close()` does first. */
function closesToo(server: HttpServer | HttpsServer, sockets: ReadonlySet<Socket>): void {
  const closeIdle = server.closeIdleConnections.bind(server);
  server.closeIdleConnections = () => {
    for (const socket of sockets) socket.destroy();
    closeIdle();
  };
}

/** Takes the listener that the server has for an event out of it, to be called instead of it. */
function replaceListener(server: Server, event: string): (...args: unknown[]) => void {
  const listeners = server.listeners(event);
  server.removeAllListeners(event);
  return (...args) => {
    for (const listener of listeners) listener.apply(server, args);
  };
}

/** A connection that has sent nothing yet costs little. */
export function afterFirstBytes(socket: Socket, act: () => void): void {
  socket.on("error", () => socket.destroy());
  socket.once("data", (first) => {
    socket.pause();
    socket.unshift(first);
    act();
  });
}

const END_OF_HEADERS = "\r\n\r\n";

function lengthOf({ headers }: IncomingMessage): number {
  return Number(headers["content-length"] ?? 0);
}

/** What headers say about the first request of a connection. */
interface FirstRequest {
  /**
   * Bytes of the body. Undefined for a body in chunks, each of which could be a byte and cost a hundred; no client of ours
   * sends that.
   */
  readonly announced: number | undefined;
  /** Bytes that follow the request. */
  readonly excess: number;
}

/** The same, once the headers of a request are there, or more than a server would take. */
function afterHeaders(socket: Socket, act: (request: FirstRequest) => void): void {
  let received = Buffer.alloc(0);
  const collect = (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    const end = received.indexOf(END_OF_HEADERS);
    if (end < 0 && received.length <= MAX_HEADER_BYTES) return;
    socket.off("data", collect);
    socket.pause();
    socket.unshift(received);
    if (end < 0) return act({ announced: 0, excess: 0 });
    const announced = announcedBytes(received.toString("latin1", 0, end));
    act({ announced, excess: received.length - end - END_OF_HEADERS.length - (announced ?? 0) });
  };
  socket.on("error", () => socket.destroy());
  socket.on("data", collect);
}

function announcedBytes(headers: string): number | undefined {
  if (/\r\ntransfer-encoding:/i.test(headers)) return undefined;
  return Number(/\r\ncontent-length:[ \t]*(\d{1,15})/i.exec(headers)?.[1] ?? 0);
}

function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
