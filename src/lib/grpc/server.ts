/** A gRPC server for connections that are given to it: messages are bytes, methods are found by their path. */
import { constants, type ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { Admission, type AdmittedConnection, CONNECTION_BYTES } from "../admission/admission.ts";
import { type Keepalive, keepAlive } from "./keepalive.ts";
import { CONTENT_TYPE, type Methods, ServerCall } from "./server-call.ts";
import { closed, limitAge, openSession, UNLIMITED_STREAMS } from "./server-session.ts";
import { STATUS } from "./status.ts";

export interface ServerOptions {
  /** Longer messages end their call; below 0 there is no limit. */
  readonly maxMessageBytes: number;
  /** On one connection; undefined for no limit. */
  readonly maxStreams: number | undefined;
  /** On a connection whose peer has not introduced itself; defaults to `maxStreams`. */
  readonly maxStrangerStreams?: number;
  /** Places for connections and streams; defaults to a budget of this server alone. */
  readonly admission?: Admission;
  /** Maximum time until the first message of a call is complete, and of each later message. */
  readonly messageMs?: number;
  /** Without it a silent client stays. */
  readonly keepalive?: Keepalive;
  /** Connections are told to go at this age, so that load spreads over replicas. */
  readonly maxAgeMs?: number | undefined;
}

export interface GrpcServer {
  /** Serves a connection, in the place that it was admitted to. */
  take(connection: Socket, place?: AdmittedConnection): void;
  /** Lets running calls finish, and cuts what is left after the grace time. */
  stop(graceMs: number): Promise<void>;
  /** Cuts all connections. */
  close(): void;
}

const UNSUPPORTED_MEDIA_TYPE = 415;
const MESSAGE_MS = 20_000;

export function grpcServer(methods: Methods, options: ServerOptions): GrpcServer {
  const { maxStreams, maxStrangerStreams, keepalive, maxAgeMs, admission = new Admission() } = options;
  const sessions = new Set<ServerHttp2Session>();
  const take = (connection: Socket, given?: AdmittedConnection) => {
    const place = given ?? admission.connection(connection.remoteAddress, () => connection.destroy());
    place.resize(connection instanceof TLSSocket ? CONNECTION_BYTES.tls : CONNECTION_BYTES.http2);
    if (connection.destroyed) return;
    const session = openSession(connection, maxStrangerStreams ?? maxStreams);
    sessions.add(session);
    session.on("close", () => {
      sessions.delete(session);
      place.close();
    });
    if (keepalive !== undefined) keepAlive(session, keepalive);
    if (maxAgeMs !== undefined) limitAge(session, maxAgeMs);
    serveCalls(session, methods, { ...options, place });
  };
  return {
    take,
    stop: async (graceMs) => {
      const cut = setTimeout(() => {
        for (const session of sessions) session.destroy();
      }, graceMs);
      await Promise.all([...sessions].map(closed));
      clearTimeout(cut);
    },
    close: () => {
      for (const session of sessions) session.destroy();
    },
  };
}

interface CallOptions extends ServerOptions {
  readonly place: AdmittedConnection;
}

function serveCalls(session: ServerHttp2Session, methods: Methods, options: CallOptions): void {
  const { maxMessageBytes, maxStreams, maxStrangerStreams, messageMs = MESSAGE_MS, place } = options;
  let isLimited = maxStrangerStreams !== undefined;
  const onIntroduced = () => {
    if (isLimited && !session.destroyed) session.settings({ maxConcurrentStreams: maxStreams ?? UNLIMITED_STREAMS });
    isLimited = false;
  };
  session.on("stream", (stream, headers, _flags, rawHeaders) => {
    stream.on("error", () => undefined); // the call ends by its "close"
    if (!String(headers["content-type"] ?? "").startsWith(CONTENT_TYPE)) {
      stream.respond({ ":status": UNSUPPORTED_MEDIA_TYPE }, { endStream: true });
      stream.close(constants.NGHTTP2_NO_ERROR);
      return;
    }
    const path = headers[":path"] ?? "";
    const call = new ServerCall(stream, { headers, rawHeaders, maxMessageBytes, messageMs, place, onIntroduced });
    const method = methods[path]; // HTTP/2 lets none through that does not begin with a slash
    if (method === undefined) call.end({ code: STATUS.UNIMPLEMENTED, details: `There is no method ${path}` });
    else if (!call.isOver) method(call);
  });
}
