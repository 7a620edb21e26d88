/** A gRPC server for connections that are given to it: messages are bytes, methods are found by their path. */
import {
  constants,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { LONGEST_TIMER_MS } from "../async/sleep.ts";
import { errorText } from "../mesh-error.ts";
import { type Keepalive, keepAlive } from "./keepalive.ts";
import { joined, MessageSender, MessageSplitter, type Pieces, type Sendable } from "./messages.ts";
import { GrpcError, OK, STATUS, type Status, statusHeaders } from "./status.ts";

/** What happens on a call. */
export interface ServerEvents {
  message(message: Pieces): void;
  /** The client sends no more. */
  end?(): void;
  /** There is room to send again. */
  drain?(): void;
}

/** Serves a call, which is read only from when its events are asked for. */
export type Method = (call: ServerCall) => void;

/** Methods by `/package.Service/Method`. */
export type Methods = Readonly<Record<string, Method>>;

export interface ServerOptions {
  /** Longer messages end their call; below 0 there is no limit. */
  readonly maxMessageBytes: number;
  /** On one connection; undefined for no limit. */
  readonly maxStreams: number | undefined;
  /** Without it a silent client stays. */
  readonly keepalive?: Keepalive;
  /** Connections are told to go at this age, so that load spreads over replicas. */
  readonly maxAgeMs?: number | undefined;
}

export interface GrpcServer {
  /** Serves a connection. */
  take(connection: Socket): void;
  /** Lets running calls finish, and cuts what is left after the grace time. */
  stop(graceMs: number): Promise<void>;
  /** Cuts all connections. */
  close(): void;
}

const CONTENT_TYPE = "application/grpc";
const UNSUPPORTED_MEDIA_TYPE = 415;
/** Streams may never end by themselves: a connection that was told to go is cut after this time. */
const AGE_GRACE_MS = 10_000;
/** Connections that came together go apart from each other, by up to this share of their age. */
const AGE_JITTER = 0.1;

export function grpcServer(methods: Methods, options: ServerOptions): GrpcServer {
  const { maxMessageBytes, maxStreams, keepalive, maxAgeMs } = options;
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer({
    // What waits for a slow reader is limited by whoever sends.
    maxSessionMemory: Number.MAX_SAFE_INTEGER,
    settings: maxStreams === undefined ? {} : { maxConcurrentStreams: maxStreams },
  });
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
    if (keepalive !== undefined) keepAlive(session, keepalive);
    if (maxAgeMs !== undefined) limitAge(session, maxAgeMs);
  });
  // Whoever is silent or speaks something else has been cut off already, and its calls end by their "close".
  server.on("sessionError", () => undefined);
  server.on("stream", (stream, headers, _flags, rawHeaders) => {
    stream.on("error", () => undefined); // the call ends by its "close"
    if (!String(headers["content-type"] ?? "").startsWith(CONTENT_TYPE)) {
      stream.respond({ ":status": UNSUPPORTED_MEDIA_TYPE }, { endStream: true });
      return;
    }
    const path = headers[":path"] ?? "";
    const call = new ServerCall(stream, { headers, rawHeaders, maxMessageBytes });
    const method = methods[path]; // HTTP/2 lets none through that does not begin with a slash
    if (method === undefined) call.end({ code: STATUS.UNIMPLEMENTED, details: `There is no method ${path}` });
    else method(call);
  });
  return {
    take: (connection) => void server.emit("connection", connection),
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

/** Tells a connection to go; it may be on its way already. */
function closed(session: ServerHttp2Session): Promise<void> {
  return new Promise((resolve) => {
    session.on("close", resolve);
    session.close();
  });
}

/** Tells a connection to go when it is old. */
function limitAge(session: ServerHttp2Session, maxAgeMs: number): void {
  const age = maxAgeMs * (1 + (2 * Math.random() - 1) * AGE_JITTER);
  let timer = setTimeout(() => {
    timer = setTimeout(() => session.destroy(), AGE_GRACE_MS).unref();
    session.close();
  }, age).unref();
  session.on("close", () => clearTimeout(timer));
}

interface CallInput {
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turns. */
  readonly rawHeaders: readonly string[];
  readonly maxMessageBytes: number;
}

/** A call that came. */
export class ServerCall {
  readonly headers: IncomingHttpHeaders;
  /** Where it came from, such as `10.1.2.3:4567` or `[fd00::1]:4567`, never IPv4 in IPv6's form; empty for what has no address. */
  readonly peer: string;
  /** DER of the client's certificate; only if TLS verified it. */
  readonly certificate: Uint8Array | undefined;
  /** Aborted when nobody waits for an answer: the client gave up or broke off, its time is over, or it sent nonsense. */
  readonly gone: AbortSignal;
  readonly #stream: ServerHttp2Stream;
  readonly #rawHeaders: readonly string[];
  readonly #maxMessageBytes: number;
  readonly #gone = new AbortController();
  readonly #sender: MessageSender;
  #onDrain: () => void = () => undefined;
  #ended = false;

  constructor(stream: ServerHttp2Stream, { headers, rawHeaders, maxMessageBytes }: CallInput) {
    this.#stream = stream;
    this.headers = headers;
    this.#rawHeaders = rawHeaders;
    this.#maxMessageBytes = maxMessageBytes;
    const socket = stream.session?.socket;
    this.peer = peerOf(socket);
    this.#sender = new MessageSender(stream, {
      onDrain: () => this.#onDrain(),
      isEncrypted: socket instanceof TLSSocket,
    });
    this.certificate = socket instanceof TLSSocket && socket.authorized ? certificateOf(socket) : undefined;
    this.gone = this.#gone.signal;
    const timeoutMs = callTimeoutMs(headers["grpc-timeout"]);
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(() => this.#fail(new GrpcError(STATUS.DEADLINE_EXCEEDED, "Deadline exceeded")), timeoutMs).unref();
    stream.on("close", () => {
      clearTimeout(timer);
      if (!this.#ended) this.#gone.abort();
    });
  }

  /** All values of a header, which `headers` may have only the first of. */
  values(name: string): readonly string[] {
    return this.#rawHeaders.filter((_, index) => index % 2 === 1 && this.#rawHeaders[index - 1] === name);
  }

  /** Gives what comes from now on. */
  serve(events: ServerEvents): void {
    const splitter = new MessageSplitter(this.#maxMessageBytes, (message) => events.message(message));
    this.#stream.on("data", (chunk: Buffer) => {
      if (this.#ended) return;
      try {
        splitter.push(chunk);
      } catch (thrown) {
        this.#fail(asGrpcError(thrown));
      }
    });
    const onEnd = () => {
      if (!this.#ended) events.end?.();
    };
    // Of a call without any message the end may have come already, which is not told again.
    if (this.#stream.readableEnded) queueMicrotask(onEnd);
    else this.#stream.on("end", onEnd);
    this.#onDrain = () => events.drain?.();
  }

  /** False when nothing more should be sent until there is room again. `left` is called when all of it has gone. */
  send(message: Sendable, left?: () => void): boolean {
    if (this.#ended || this.#stream.destroyed || this.#stream.closed) return true;
    if (!this.#stream.headersSent) {
      this.#stream.respond({ ":status": 200, "content-type": CONTENT_TYPE }, { waitForTrailers: true });
    }
    return this.#sender.send(message, left);
  }

  /** Ends the call after what was sent. */
  end(status: Status = OK): void {
    const stream = this.#stream;
    if (this.#ended || stream.destroyed || stream.closed) return;
    this.#ended = true;
    // What still comes is of no interest, but must not block what comes on other streams.
    stream.resume();
    if (!stream.headersSent) {
      const head = { ":status": 200, "content-type": CONTENT_TYPE };
      stream.respond({ ...head, ...statusHeaders(status) }, { endStream: true });
      return;
    }
    stream.on("wantTrailers", () => stream.sendTrailers(statusHeaders(status)));
    this.#sender.end();
  }

  /** Ends the call at once, for a client that does not read: what was sent and has not left is dropped. */
  cut(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  #fail(error: GrpcError): void {
    this.end(error);
    this.#gone.abort(error);
  }
}

function peerOf(socket: Pick<Socket, "remoteAddress" | "remotePort"> | undefined): string {
  const { remoteAddress, remotePort } = socket ?? {};
  if (remoteAddress === undefined) return "";
  // Of IPv4 on a socket for both.
  const host = remoteAddress.replace(/^::ffff:(?=\d+\.)/, "");
  return host.includes(":") ? `[${host}]:${remotePort}` : `${host}:${remotePort}`;
}

function certificateOf(socket: TLSSocket): Uint8Array | undefined {
  return socket.getPeerX509Certificate()?.raw;
}

function asGrpcError(thrown: unknown): GrpcError {
  return thrown instanceof GrpcError ? thrown : new GrpcError(STATUS.INTERNAL, errorText(thrown), { cause: thrown });
}

/** A method with one message in and one out. What it throws the call ends with. */
export function unaryMethod(answer: (request: Buffer, call: ServerCall) => Promise<Uint8Array>): Method {
  return (call) => {
    let asked = false;
    const onMessage = async (message: Pieces) => {
      if (asked) return call.end({ code: STATUS.INTERNAL, details: "Received more than one message" });
      asked = true;
      try {
        call.send(await answer(joined(message), call));
        call.end();
      } catch (thrown) {
        call.end(asGrpcError(thrown));
      }
    };
    call.serve({
      message: (message) => void onMessage(message),
      end: () => {
        if (!asked) call.end({ code: STATUS.INTERNAL, details: "Received no message" });
      },
    });
  };
}

const MS_OF_UNIT: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

function callTimeoutMs(header: string | string[] | undefined): number | undefined {
  const match = /^(\d{1,8})([HMSmun])$/.exec(String(header ?? ""));
  const ms = Number(match?.[1]) * (MS_OF_UNIT[match?.[2] ?? ""] ?? Number.NaN);
  return ms <= LONGEST_TIMER_MS ? ms : undefined;
}
