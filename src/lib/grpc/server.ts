/** A gRPC server for connections that are given to it: messages are bytes, methods are found by their path. */
import { createServer, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { errorText } from "../mesh-error.ts";
import { joined, MessageSplitter, type Pieces, sendMessage } from "./messages.ts";
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
}

export interface GrpcServer {
  /** Serves a connection. */
  take(connection: Socket): void;
  /** Cuts all connections. */
  close(): void;
}

const CONTENT_TYPE = "application/grpc";
const UNSUPPORTED_MEDIA_TYPE = 415;

export function grpcServer(methods: Methods, { maxMessageBytes, maxStreams }: ServerOptions): GrpcServer {
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer({
    // What waits for a slow reader is limited by whoever sends.
    maxSessionMemory: Number.MAX_SAFE_INTEGER,
    settings: maxStreams === undefined ? {} : { maxConcurrentStreams: maxStreams },
  });
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
  });
  // Whoever speaks something else has been cut off already.
  server.on("sessionError", () => undefined);
  server.on("stream", (stream, headers) => {
    stream.on("error", () => undefined); // the call ends by its "close"
    if (!String(headers["content-type"] ?? "").startsWith(CONTENT_TYPE)) {
      stream.respond({ ":status": UNSUPPORTED_MEDIA_TYPE }, { endStream: true });
      return;
    }
    const path = headers[":path"] ?? "";
    const call = new ServerCall(stream, headers, maxMessageBytes);
    const method = methods[path];
    if (method === undefined) call.end({ code: STATUS.UNIMPLEMENTED, details: `There is no method ${path}` });
    else method(call);
  });
  return {
    take: (connection) => void server.emit("connection", connection),
    close: () => {
      for (const session of sessions) session.destroy();
    },
  };
}

/** A call that came. */
export class ServerCall {
  readonly headers: IncomingHttpHeaders;
  /** Aborted when nobody waits for an answer: the client gave up or broke off, its time is over, or it sent nonsense. */
  readonly gone: AbortSignal;
  readonly #stream: ServerHttp2Stream;
  readonly #maxMessageBytes: number;
  readonly #gone = new AbortController();
  #ended = false;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, maxMessageBytes: number) {
    this.#stream = stream;
    this.headers = headers;
    this.#maxMessageBytes = maxMessageBytes;
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
    this.#stream.on("end", () => {
      if (!this.#ended) events.end?.();
    });
    this.#stream.on("drain", () => events.drain?.());
  }

  /** False when nothing more should be sent until there is room again. */
  send(message: Uint8Array | Pieces): boolean {
    if (this.#ended || this.#stream.destroyed || this.#stream.closed) return true;
    if (!this.#stream.headersSent) {
      this.#stream.respond({ ":status": 200, "content-type": CONTENT_TYPE }, { waitForTrailers: true });
    }
    return sendMessage(this.#stream, message);
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
    stream.end();
  }

  #fail(error: GrpcError): void {
    this.end(error);
    this.#gone.abort(error);
  }
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
const MAX_TIMER_MS = 2 ** 31 - 1;

function callTimeoutMs(header: string | string[] | undefined): number | undefined {
  const match = /^(\d{1,8})([HMSmun])$/.exec(String(header ?? ""));
  const ms = Number(match?.[1]) * (MS_OF_UNIT[match?.[2] ?? ""] ?? Number.NaN);
  return ms <= MAX_TIMER_MS ? ms : undefined;
}
