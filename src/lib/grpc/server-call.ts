/** A call as its server sees it. */
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import {
  type AdmittedConnection,
  type AdmittedStream,
  type RefusalReason,
  STREAM_BYTES,
} from "../admission/admission.ts";
import { LONGEST_TIMER_MS } from "../async/sleep.ts";
import { errorText } from "../mesh-error.ts";
import { MessageSender, MessageSplitter, type Pieces, type Sendable } from "./messages.ts";
import { GrpcError, OK, STATUS, type Status, statusHeaders } from "./status.ts";

/** What happens on a call. */
export interface ServerEvents {
  message(message: Pieces): void;
  /** The client sends no more. */
  end?(): void;
  /** There is room to send again. */
  drain?(): void;
  /** The method calls `introduced()` itself; otherwise the first message introduces the caller. */
  readonly introducesCaller?: boolean;
}

/** Serves a call, which is read only from when its events are asked for. */
export type Method = (call: ServerCall) => void;

/** Methods by `/package.Service/Method`. */
export type Methods = Readonly<Record<string, Method>>;

export const CONTENT_TYPE = "application/grpc";
/** A call that ended is reset if its client has not read the end, or has not ended its own side, after this time. */
const END_GRACE_MS = { failed: 10_000, ok: 60_000 } as const;

const CROWDED = new GrpcError(
  STATUS.RESOURCE_EXHAUSTED,
  "Too many callers have not introduced themselves: try again later",
);

interface CallInput {
  readonly messageMs: number;
  readonly place: AdmittedConnection;
  /** A call of the connection introduced its caller. */
  readonly onIntroduced: () => void;
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
  readonly #messageMs: number;
  readonly #gone = new AbortController();
  readonly #sender: MessageSender;
  readonly #place: AdmittedStream;
  readonly #onIntroduced: () => void;
  #onDrain: () => void = () => undefined;
  #ended = false;
  /** Until the message that is awaited, or that has begun, is complete. */
  #messageTimer: NodeJS.Timeout | undefined;

  constructor(stream: ServerHttp2Stream, input: CallInput) {
    const { headers, rawHeaders, maxMessageBytes, messageMs, place, onIntroduced } = input;
    this.#stream = stream;
    this.#messageMs = messageMs;
    this.#onIntroduced = onIntroduced;
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
      clearTimeout(this.#messageTimer);
      this.#place.close();
      if (!this.#ended) this.#gone.abort();
    });
    this.#awaitMessage();
    this.#place = place.stream(() => (this.#ended ? this.#reset() : this.#fail(CROWDED)));
    this.#place.waits(rawHeaders.reduce((sum, text) => sum + text.length, STREAM_BYTES));
  }

  /** It ended, or was refused, before or while it was served. */
  get isOver(): boolean {
    return this.#ended;
  }

  /** The caller proved this identity: what the call occupies counts for that identity from now on. */
  authenticated(identity: string): void {
    this.#place.authenticated(identity);
  }

  /** The caller sent a valid message and is no longer one of the strangers that give way to others. */
  introduced(): void {
    this.#place.introduced();
    this.#onIntroduced();
  }

  /** Counts that the method refuses the caller. */
  refused(reason: RefusalReason): void {
    this.#place.counted(reason);
  }

  /** All values of a header, which `headers` may have only the first of. */
  values(name: string): readonly string[] {
    return this.#rawHeaders.filter((_, index) => index % 2 === 1 && this.#rawHeaders[index - 1] === name);
  }

  /** Gives what comes from now on. Messages longer than `maxBytes` end the call; by default it is the limit of the server. */
  serve(events: ServerEvents, maxBytes = this.#maxMessageBytes): void {
    const splitter = new MessageSplitter(maxBytes, (message) => {
      this.#endMessageTimer();
      if (events.introducesCaller !== true) this.introduced();
      events.message(message);
    });
    this.#stream.on("data", (chunk: Buffer) => {
      if (this.#ended) return;
      try {
        splitter.push(chunk);
        if (this.#ended) return;
        this.#place.buffers(splitter.keptBytes);
        if (splitter.isWithinMessage) this.#awaitMessage();
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
    this.#endMessageTimer();
    this.#place.buffers(0);
    // What still comes is of no interest, but must not block what comes on other streams.
    stream.resume();
    this.#resetAfterEnd(status);
    if (!stream.headersSent) {
      const head = { ":status": 200, "content-type": CONTENT_TYPE };
      stream.respond({ ...head, ...statusHeaders(status) }, { endStream: true });
      return;
    }
    stream.on("wantTrailers", () => stream.sendTrailers(statusHeaders(status)));
    this.#sender.end();
  }

  /** A client that does not read the end, or that does not end its own side, must not keep the stream. */
  #resetAfterEnd({ code }: Status): void {
    const graceMs = code === STATUS.OK ? END_GRACE_MS.ok : END_GRACE_MS.failed;
    const timer = setTimeout(() => this.#reset(), graceMs).unref();
    this.#stream.on("close", () => clearTimeout(timer));
  }

  /** Ends the call at once, for a client that does not read: what was sent and has not left is dropped. */
  cut(): void {
    this.#reset();
  }

  #reset(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  /** The message that the client has to send next, or has begun, has to be complete in time. */
  #awaitMessage(): void {
    this.#messageTimer ??= setTimeout(() => {
      this.refused("timeout");
      this.#fail(new GrpcError(STATUS.DEADLINE_EXCEEDED, `No complete message came in ${this.#messageMs} ms`));
    }, this.#messageMs).unref();
  }

  #endMessageTimer(): void {
    clearTimeout(this.#messageTimer);
    this.#messageTimer = undefined;
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

export function asGrpcError(thrown: unknown): GrpcError {
  return thrown instanceof GrpcError ? thrown : new GrpcError(STATUS.INTERNAL, errorText(thrown), { cause: thrown });
}

const MS_OF_UNIT: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

function callTimeoutMs(header: string | string[] | undefined): number | undefined {
  const match = /^(\d{1,8})([HMSmun])$/.exec(String(header ?? ""));
  const ms = Number(match?.[1]) * (MS_OF_UNIT[match?.[2] ?? ""] ?? Number.NaN);
  return ms <= LONGEST_TIMER_MS ? ms : undefined;
}
