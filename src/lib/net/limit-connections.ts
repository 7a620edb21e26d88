/** Limits what the peers of an HTTP/1 server can occupy. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Server, Socket } from "node:net";
import { type Admission, type AdmittedConnection, CONNECTION_BYTES } from "../admission/admission.ts";

/** A larger response that its client does not read counts as this much, so that a few large ones find room. */
const MAX_COUNTED_RESPONSE_BYTES = 6 * 1024 * 1024;

/** Of every HTTP/1 server; a complete request has a limit of its own in each of them. */
export const HTTP_TIMEOUTS = {
  headersTimeout: 10_000,
  /** How often the timeouts of requests are checked. */
  connectionsCheckingInterval: 2_000,
} as const;
/** A connection with a request on which nothing moves for so long is closed: its client does not read. */
export const STALLED_MS = 60_000;

export interface LimitedConnections {
  /** So many bytes of the request's body are kept. */
  keeps(request: IncomingMessage, bytes: number): void;
}

interface Place {
  readonly admitted: AdmittedConnection;
  readonly baseBytes: number;
}

/** Gives each connection of the server a place. A connection keeps it until it closes: HTTP/1 callers do not introduce themselves. */
export function limitConnections(server: Server, admission: Admission): LimitedConnections {
  const places = new Map<string, Place>();
  const isTls = "setSecureContext" in server;
  server.on("connection", (socket: Socket) => {
    const admitted = admission.connection(socket.remoteAddress, () => socket.destroy());
    const place = { admitted, baseBytes: isTls ? CONNECTION_BYTES.tls : CONNECTION_BYTES.http1 };
    const key = keyOf(socket);
    places.set(key, place);
    admitted.resize(place.baseBytes);
    socket.on("close", () => {
      if (places.get(key) === place) places.delete(key);
      admitted.close();
    });
  });
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    const place = places.get(keyOf(request.socket));
    if (place === undefined) return;
    place.admitted.renew();
    response.on("prefinish", () => {
      const unread = Math.min(response.writableLength, MAX_COUNTED_RESPONSE_BYTES);
      place.admitted.resize(place.baseBytes + unread);
    });
    response.on("close", () => place.admitted.resize(place.baseBytes));
  });
  return {
    keeps: (request, bytes) => {
      const place = places.get(keyOf(request.socket));
      place?.admitted.resize(place.baseBytes + bytes);
    },
  };
}

function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
