/** A connection to a gRPC server. Messages are bytes; whoever wants another connection after this one opens it. */
import { V4MAPPED } from "node:dns";
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, constants } from "node:http2";
import { connect, isIP, type Socket, type TcpNetConnectOpts } from "node:net";
import { checkServerIdentity, connect as connectTls, type PeerCertificate } from "node:tls";
import { errorText } from "../mesh-error.ts";
import { type Keepalive, keepAlive } from "./keepalive.ts";
import { joined, MessageSender, MessageSplitter, type Pieces } from "./messages.ts";
import { GrpcError, STATUS, type Status, statusOfHeaders, statusOfHttp, statusOfReset } from "./status.ts";

export interface ConnectOptions {
  /** `host:port`, or `[address]:port`. */
  readonly address: string;
  /** Undefined speaks plain text. */
  readonly tls?: ClientTls | undefined;
  /** URL of the proxy through which the server is reached; undefined goes there directly. */
  readonly proxy?: string | undefined;
  /** How much may be on its way to us, on a stream and on the connection. */
  readonly windowBytes: number;
  /** Asks now and then whether the server is there. */
  readonly keepalive: Keepalive;
}

export interface ClientTls {
  /** The name that the server's certificate must have. */
  readonly serverName: string;
  /** PEM, and where it is from; undefined trusts what the machine trusts. */
  readonly roots: { readonly pem: Buffer; readonly from: string } | undefined;
  /** PEM, by which the server knows us. */
  readonly client?: { readonly certificate: Buffer; readonly key: Buffer } | undefined;
}

interface TlsFailure {
  readonly code: string;
  readonly cert: PeerCertificate;
}

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

/**
 * Without a hint Node leaves out the addresses of a kind that no interface but loopback has, and so `localhost` of a machine
 * with IPv6 alone. This one says nothing more than that there is one.
 */
const EVERY_ADDRESS = V4MAPPED;
/** Codes of Node's for a certificate that no root leads to. */
const NOT_SIGNED: ReadonlySet<string | undefined> = new Set([
  "CERT_SIGNATURE_FAILURE",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);
const DEFAULT_PORT = "443";
/** Details of a call whose server closed the connection, and did not break it. */
export const CONNECTION_CLOSED = "Connection dropped";
const HTTP_OK = 200;

/** Rejects when there is no connection before the signal is aborted. */
export async function connectGrpc(options: ConnectOptions, signal: AbortSignal): Promise<GrpcConnection> {
  const { proxy } = options;
  const tunnel = proxy === undefined ? undefined : await tunnelTo(options, proxy, signal);
  return connectOver(tunnel, options, signal);
}

async function tunnelTo(options: ConnectOptions, proxy: string, signal: AbortSignal): Promise<Socket> {
  const { host, port } = partsOf(options.address);
  try {
    const { openTunnel } = await import("../net/http-tunnel.ts");
    return await openTunnel(proxy, `${host}:${port}`, signal);
  } catch (thrown) {
    throw signal.aborted ? givenUp(signal) : unreachable(options, new Error(errorText(thrown)));
  }
}

function connectOver(
  tunnel: Socket | undefined,
  options: ConnectOptions,
  signal: AbortSignal,
): Promise<GrpcConnection> {
  return new Promise((resolve, reject) => {
    const url = `${options.tls === undefined ? "http" : "https"}://${options.address}`;
    if (!URL.canParse(url)) {
      reject(unreachable(options, new Error("an address is host:port")));
      return;
    }
    const session = connectHttp2(url, {
      createConnection: () => openSocket(options, tunnel),
      maxSessionMemory: Number.MAX_SAFE_INTEGER,
      settings: { enablePush: false, initialWindowSize: options.windowBytes },
    });
    let failure: unknown;
    const fail = (cause: unknown) => {
      failure ??= cause;
      session.destroy();
    };
    const giveUp = () => fail(givenUp(signal));
    signal.addEventListener("abort", giveUp, { once: true });
    if (signal.aborted) giveUp();
    session.on("error", fail);
    session.once("close", () => {
      signal.removeEventListener("abort", giveUp);
      reject(unreachable(options, failure));
    });
    // The first that a server says: until then it may be anything that accepts connections.
    session.once("remoteSettings", () => {
      signal.removeEventListener("abort", giveUp);
      session.setLocalWindowSize(options.windowBytes);
      resolve(new GrpcConnection(session, options));
    });
  });
}

function unreachable({ address, tls }: ConnectOptions, cause: unknown): GrpcError {
  if (cause instanceof GrpcError) return cause;
  const errors = cause instanceof AggregateError ? cause.errors : [cause];
  const reasons = errors.flatMap((error: unknown) =>
    error instanceof Error ? [(tls && distrust(error, tls)) ?? error.message] : [],
  );
  const reason = reasons.join("; ") || "the connection was closed";
  return new GrpcError(STATUS.UNAVAILABLE, `No connection established to ${address}: ${reason}`);
}

/** What is wrong with a server, in the words of Go's programs, for which people look, and against what it was held. */
function distrust(error: Error & Partial<TlsFailure>, { serverName, roots }: ClientTls): string | undefined {
  if (error.code === "ERR_SSL_WRONG_VERSION_NUMBER")
    return "first record does not look like a TLS handshake: the server speaks plain text";
  if (NOT_SIGNED.has(error.code))
    return `certificate signed by unknown authority, by none of ${roots?.from ?? "those that this machine trusts"}`;
  if (error.code !== "ERR_TLS_CERT_ALTNAME_INVALID") return undefined;
  const names = error.cert?.subjectaltname?.replaceAll(/\b(DNS|IP Address|URI):/g, "");
  return `certificate is valid for ${names ?? "no name"}, not ${serverName}`;
}

function givenUp({ reason }: AbortSignal): GrpcError {
  return reason instanceof Error && reason.name === "TimeoutError"
    ? new GrpcError(STATUS.DEADLINE_EXCEEDED, "No connection established in time")
    : new GrpcError(STATUS.CANCELLED, "Cancelled before there was a connection");
}

function openSocket({ address, tls }: ConnectOptions, tunnel: Socket | undefined): Socket {
  const { host, port } = partsOf(address);
  const where = { host: host.replace(/^\[(.*)\]$/, "$1"), port: Number(port), hints: EVERY_ADDRESS };
  if (tls === undefined) return (tunnel ?? connect(where)).setNoDelay();
  return openTls(tunnel === undefined ? where : { socket: tunnel }, tls);
}

/** The host in the form of the address, with brackets if it has them. */
function partsOf(address: string): { readonly host: string; readonly port: string } {
  const [, host = address, port = DEFAULT_PORT] = /^(.*?)(?::(\d+))?$/.exec(address) ?? [];
  return { host, port };
}

function openTls(where: TcpNetConnectOpts | { readonly socket: Socket }, tls: ClientTls): Socket {
  const { serverName, roots, client } = tls;
  const secure = connectTls({
    ...where,
    ALPNProtocols: ["h2"],
    checkServerIdentity: (_: string, certificate: PeerCertificate) => checkServerIdentity(serverName, certificate),
    ...(isIP(serverName) === 0 && { servername: serverName }),
    ...(roots !== undefined && { ca: roots.pem }),
    ...(client !== undefined && { key: client.key, cert: client.certificate }),
  });
  return secure.setNoDelay();
}

export class GrpcConnection {
  /** Aborted when the server takes no more calls here, or the connection is gone. Calls that are running may go on. */
  readonly ending: AbortSignal;
  readonly #session: ClientHttp2Session;
  readonly #address: string;
  /** The server has said that it ends, without an error. */
  #announced = false;

  constructor(session: ClientHttp2Session, { address, keepalive }: ConnectOptions) {
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
  send(message: Uint8Array | Pieces): boolean {
    return this.#stream.closed || this.#stream.destroyed || this.#sender.send(message);
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
