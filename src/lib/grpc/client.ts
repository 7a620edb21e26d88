/** Calls on a connection to a gRPC server. Messages are bytes. */
import { type ClientHttp2Session, type ClientHttp2Stream, constants } from "node:http2";
import { type Keepalive, keepAlive } from "./keepalive.ts";
import { joined, MessageSender, MessageSplitter, type Pieces } from "./messages.ts";
import { GrpcError, STATUS, type Status, statusOfHeaders, statusOfHttp, statusOfReset } from "./status.ts";

/** What happens on a call. */
export interface ClientEvents {
  message(message: Pieces): void;
  /** The last that happens, once. */
  end(status: Status): void;
}

export interface UnaryRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly message: Uint8Array;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Details of a call whose server closed the connection, and did not break it. */
export const CONNECTION_CLOSED = "Connection dropped";
const HTTP_OK = 200;

export interface ConnectionOptions {
  /** `host:port`, or `[address]:port`. */
  readonly address: string;
  /** Asks now and then whether the server is there. */
  readonly keepalive: Keepalive;
}

export class GrpcConnection {
  /** Aborted when the server takes no more calls here, or the connection is gone. Calls that are running may go on. */
  readonly ending: AbortSignal;
  readonly #session: ClientHttp2Session;
  readonly #address: string;
  /** The server has said that it ends, without an error. */
  #announced = false;

  constructor(session: ClientHttp2Session, { address, keepalive }: ConnectionOptions) {
    this.#session = session;
    this.#address = address;
    const ending = new AbortController();
    this.ending = ending.signal;
    session.on("goaway", (code) => {
      this.#announced ||= code === constants.NGHTTP2_NO_ERROR;
      ending.abort();
    });
    session.on("close", () => ending.abort());
    keepAlive(session, keepalive);
  }

  /** Starts a call. */
  call(path: string, headers: Readonly<Record<string, string>>, events: ClientEvents): ClientCall {
    if (this.#session.closed || this.#session.destroyed)
      throw new GrpcError(STATUS.UNAVAILABLE, `The connection to ${this.#address} has ended`);
    const stream = this.#session.request({
      ...headers,
      ":method": "POST",
      ":path": path,
      ":authority": this.#address,
      te: "trailers",
      "content-type": "application/grpc",
      "grpc-accept-encoding": "identity",
      "user-agent": "grpc-node-http2",
    });
    return new ClientCall(stream, events, () => this.#announced);
  }

  /** One message for another. Rejects with how the call ended when it did not end well. */
  unary({ path, headers, message, timeoutMs, signal }: UnaryRequest): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      let answer: Pieces | undefined;
      let late = false;
      const all = { ...headers, "grpc-timeout": `${Math.ceil(timeoutMs)}m` };
      const call = this.call(path, all, {
        message: (pieces) => {
          answer = pieces;
        },
        end: ({ code, details }) => {
          clearTimeout(timer);
          signal.removeEventListener("abort", cancel);
          if (late) reject(new GrpcError(STATUS.DEADLINE_EXCEEDED, `no answer in ${timeoutMs} ms`));
          else if (code !== STATUS.OK) reject(new GrpcError(code, details));
          else if (answer === undefined) reject(new GrpcError(STATUS.INTERNAL, "the answer has no message"));
          else resolve(joined(answer));
        },
      });
      const cancel = () => call.cancel();
      const timer = setTimeout(() => {
        late = true;
        cancel();
      }, timeoutMs);
      signal.addEventListener("abort", cancel, { once: true });
      call.send(message);
      call.end();
      if (signal.aborted) cancel();
    });
  }

  /** Ends all calls. */
  close(): void {
    this.#session.destroy();
  }
}

/** A call that was started. */
export class ClientCall {
  readonly #stream: ClientHttp2Stream;
  readonly #events: ClientEvents;
  readonly #sender: MessageSender;
  #status: Status | undefined;

  /** `announced` tells whether the server had said before that its connection ends, without an error. */
  constructor(stream: ClientHttp2Stream, events: ClientEvents, announced: () => boolean) {
    this.#stream = stream;
    this.#events = events;
    this.#sender = new MessageSender(stream, { isEncrypted: stream.session?.encrypted === true });
    const { session } = stream;
    let httpStatus = HTTP_OK;
    let failure: Error | undefined;
    const splitter = new MessageSplitter(-1, (message) => this.#events.message(message));
    stream.on("response", (headers) => {
      httpStatus = headers[":status"] ?? HTTP_OK;
      this.#status ??= statusOfHeaders(headers);
    });
    stream.on("trailers", (headers) => {
      this.#status ??= statusOfHeaders(headers);
    });
    stream.on("error", (error) => {
      failure = error;
    });
    stream.on("data", (chunk: Buffer) => this.#split(splitter, chunk));
    // Whoever has the answer has nothing more to say.
    stream.on("end", () => stream.end());
    stream.on("close", () => {
      const broken = session?.destroyed !== false;
      const ending = { httpStatus, failure, broken, announced: announced() };
      events.end(this.#status ?? statusWithout(stream, ending));
    });
  }

  /** False when nothing more should be sent for now; it may be, and is kept. */
  send(message: Uint8Array | Pieces, left?: () => void): boolean {
    return this.#stream.closed || this.#stream.destroyed || this.#sender.send(message, left);
  }

  /** Sends no more. */
  end(): void {
    this.#sender.end();
  }

  cancel(): void {
    this.#fail({ code: STATUS.CANCELLED, details: "Cancelled on client" });
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  #split(splitter: MessageSplitter, chunk: Buffer): void {
    try {
      splitter.push(chunk);
    } catch (thrown) {
      if (!(thrown instanceof GrpcError)) throw thrown;
      this.#fail(thrown);
    }
  }

  #fail(status: Status): void {
    this.#status ??= status;
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }
}

interface Ending {
  readonly httpStatus: number;
  readonly failure: Error | undefined;
  /** The connection is gone, and the call with it. */
  readonly broken: boolean;
  /** The server had said that it would end, without an error. */
  readonly announced: boolean;
}

/** How a call ended whose server did not say. */
function statusWithout(stream: ClientHttp2Stream, { httpStatus, failure, broken, announced }: Ending): Status {
  if (httpStatus !== HTTP_OK) return statusOfHttp(httpStatus);
  if (broken) {
    const before = announced ? ", received prior goaway: code: NO_ERROR" : "";
    return { code: STATUS.UNAVAILABLE, details: `${failure?.message ?? CONNECTION_CLOSED}${before}` };
  }
  return statusOfReset(stream.rstCode);
}
