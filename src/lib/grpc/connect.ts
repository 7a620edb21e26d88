/** Connects to a gRPC server. Nothing here reconnects: callers open another connection after this one. */
import { V4MAPPED } from "node:dns";
import { connect as connectHttp2 } from "node:http2";
import { connect, isIP, type Socket, type TcpNetConnectOpts } from "node:net";
import { checkServerIdentity, connect as connectTls, type PeerCertificate } from "node:tls";
import { errorText } from "../mesh-error.ts";
import { CONNECT_TIMEOUT_MS, connectTimeout } from "../net/connect-limit.ts";
import { type ConnectionOptions, GrpcConnection } from "./client.ts";
import { GrpcError, STATUS } from "./status.ts";

export interface ConnectOptions extends ConnectionOptions {
  /** Undefined speaks plain text. */
  readonly tls?: ClientTls | undefined;
  /** URL of the proxy through which the server is reached; undefined goes there directly. */
  readonly proxy?: string | undefined;
  /** How much may be on its way to us, on a stream and on the connection. */
  readonly windowBytes: number;
  /** Limit for one attempt: name, proxy, TCP, TLS and the server's HTTP/2 settings together; defaults to 5 s. */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * The kernel probes a silent connection after this time (10 s by default), and ends it 10 s later when no probe is answered:
   * sooner than pings notice that a node is gone, and at no cost to either program.
   */
  readonly probeAfterMs?: number | undefined;
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
const PROBE_AFTER_MS = 10_000;
/** Rejects when there is no connection in time, or before the signal is aborted. Names are looked up for each attempt. */
export async function connectGrpc(options: ConnectOptions, signal: AbortSignal): Promise<GrpcConnection> {
  const { address, proxy, connectTimeoutMs = CONNECT_TIMEOUT_MS } = options;
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(connectTimeout(address, connectTimeoutMs)), connectTimeoutMs);
  const over = AbortSignal.any([signal, late.signal]);
  try {
    const tunnel = proxy === undefined ? undefined : await tunnelTo(options, proxy, over);
    return await connectOver(tunnel, options, over);
  } catch (thrown) {
    if (signal.aborted) throw givenUp(signal, address);
    throw unreachable(options, late.signal.aborted ? late.signal.reason : thrown);
  } finally {
    clearTimeout(timer);
  }
}

async function tunnelTo({ address }: ConnectOptions, proxy: string, signal: AbortSignal): Promise<Socket> {
  const { host, port } = partsOf(address);
  const { openTunnel } = await import("../net/http-tunnel.ts");
  try {
    return await openTunnel(proxy, `${host}:${port}`, signal);
  } catch (thrown) {
    throw new Error(errorText(thrown));
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
      reject(new Error("an address is host:port"));
      return;
    }
    const socket = openSocket(options, tunnel).setKeepAlive(true, options.probeAfterMs ?? PROBE_AFTER_MS);
    const session = connectHttp2(url, {
      createConnection: () => socket,
      maxSessionMemory: Number.MAX_SAFE_INTEGER,
      settings: { enablePush: false, initialWindowSize: options.windowBytes },
    });
    const fail = (cause: unknown) => {
      reject(cause);
      session.destroy();
      // Destroying a session does not destroy a socket that is still connecting.
      socket.on("error", () => undefined).destroy();
      tunnel?.destroy();
    };
    const giveUp = () => fail(signal.reason);
    signal.addEventListener("abort", giveUp, { once: true });
    session.on("error", reject);
    session.once("close", () => {
      signal.removeEventListener("abort", giveUp);
      reject(new Error("the connection was closed"));
    });
    // The first that a server says: until then it may be anything that accepts connections.
    session.once("remoteSettings", () => {
      signal.removeEventListener("abort", giveUp);
      session.setLocalWindowSize(options.windowBytes);
      resolve(new GrpcConnection(session, options));
    });
    if (signal.aborted) giveUp();
  });
}

function unreachable({ address, tls }: ConnectOptions, cause: unknown): GrpcError {
  if (cause instanceof GrpcError) return cause;
  const errors = cause instanceof AggregateError ? cause.errors : [cause];
  const reasons = errors.flatMap((error: unknown) =>
    error instanceof Error ? [(tls && distrust(error, tls)) ?? error.message] : [],
  );
  const reason = reasons.join("; ");
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

function givenUp({ reason }: AbortSignal, address: string): GrpcError {
  return reason instanceof Error && reason.name === "TimeoutError"
    ? new GrpcError(STATUS.DEADLINE_EXCEEDED, `No connection established to ${address} in time`)
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
