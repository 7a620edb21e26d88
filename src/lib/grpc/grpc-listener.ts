/** A gRPC server on one address, in plain text or with TLS. */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type SecureContextOptions, type Server as TlsServer } from "node:tls";
import { Admission, type AdmittedConnection, CONNECTION_BYTES } from "../admission/admission.ts";
import { peerName } from "../admission/peer-name.ts";
import { afterFirstBytes } from "../net/limit-connections.ts";
import { listen } from "../net/listen.ts";
import { formatListenAddress, type ListenAddress } from "../net/listen-address.ts";
import type { ServerIdentity, ServerIdentitySource } from "../net/server-identity.ts";
import { Turns } from "../net/turns.ts";
import type { Keepalive } from "./keepalive.ts";
import { type GrpcServer, grpcServer } from "./server.ts";
import type { Methods } from "./server-call.ts";

export interface GrpcListenerOptions {
  readonly flag: string;
  readonly address: ListenAddress;
  readonly services: readonly Methods[];
  /** Absent: plain text. Clients may show a certificate and need not. */
  readonly identity?: ServerIdentitySource;
  readonly keepalive: ConnectionLimits;
  /** Of one request; 4 MB when not given. */
  readonly maxRequestBytes?: number;
  /** Of one connection; 1,000 when not given. */
  readonly maxStreams?: number | undefined;
  /** Places for peers that have not introduced themselves; a budget of this listener alone when not given. */
  readonly admission?: Admission;
}

export interface ConnectionLimits extends Keepalive {
  /** Connections are closed gracefully at this age, so that load spreads over replicas. */
  readonly maxConnectionAgeMs: number | undefined;
}

/** A node with its metadata is tens of kilobytes; nothing that clients send is near this. */
const MAX_REQUEST_BYTES = 4 * 1024 * 1024;
/** A shared agent has a few streams for each of its workloads. */
const MAX_STREAMS_PER_CONNECTION = 1_000;
/** Until the peer of a connection has introduced itself, which bounds the work that one read from it can cause. */
const MAX_STRANGER_STREAMS = 100;
/** A client that does not finish its handshake in this time is cut off. */
const HANDSHAKE_MS = 10_000;

export class GrpcListener {
  readonly #options: GrpcListenerOptions;
  readonly #admission: Admission;
  readonly #grpc: GrpcServer;
  readonly #sockets: Server;
  readonly #tls: TlsServer | undefined;
  /** Connections on which gRPC has not begun, by the address and port of their peer. */
  readonly #arriving = new Map<string, { readonly socket: Socket; readonly place: AdmittedConnection }>();
  readonly #turns = new Turns();
  #forget: () => void = () => undefined;

  constructor(options: GrpcListenerOptions) {
    this.#options = options;
    const { services, identity, keepalive, maxRequestBytes, maxStreams = MAX_STREAMS_PER_CONNECTION } = options;
    this.#admission = options.admission ?? new Admission();
    this.#grpc = grpcServer(Object.assign({}, ...services), {
      maxMessageBytes: maxRequestBytes ?? MAX_REQUEST_BYTES,
      maxStreams,
      maxStrangerStreams: Math.min(maxStreams, MAX_STRANGER_STREAMS),
      admission: this.#admission,
      keepalive,
      maxAgeMs: keepalive.maxConnectionAgeMs,
    });
    this.#sockets = createServer({ noDelay: true }, (socket) => this.#admit(socket));
    this.#tls = identity === undefined ? undefined : this.#tlsServer(identity);
  }

  /** Begins to serve and answers with the address that was taken, such as `[::]:15010`. */
  async start(): Promise<string> {
    const { flag, address } = this.#options;
    const taken = await listen({
      flag,
      address,
      bind: async (wanted) => {
        this.#sockets.listen(wanted);
        await once(this.#sockets, "listening");
        const bound = this.#sockets.address();
        return typeof bound === "object" && bound !== null ? bound.port : wanted.port;
      },
    });
    return formatListenAddress(taken);
  }

  /** Takes no more calls, lets the running ones finish, and cuts what is left after the grace time. */
  async stop(graceMs: number): Promise<void> {
    this.#forget();
    this.#sockets.close();
    for (const { socket } of this.#arriving.values()) socket.destroy();
    await this.#grpc.stop(graceMs);
  }

  /** A connection that has sent nothing yet costs little: TLS and HTTP/2 begin with its first bytes. */
  #admit(socket: Socket): void {
    const place = this.#admission.connection(socket.remoteAddress, () => socket.destroy());
    const key = peerKey(socket);
    this.#arriving.set(key, { socket, place });
    socket.on("close", () => {
      if (this.#arriving.get(key)?.socket === socket) this.#arriving.delete(key);
      place.close();
    });
    afterFirstBytes(socket, () => {
      this.#turns.run(() => this.#start(socket, place));
    });
  }

  #start(socket: Socket, place: AdmittedConnection): void {
    if (socket.destroyed) return;
    if (this.#tls === undefined) {
      this.#take(socket);
      return;
    }
    place.resize(CONNECTION_BYTES.tls);
    this.#tls.emit("connection", socket);
  }

  #take(socket: Socket): void {
    const key = peerKey(socket);
    const place = this.#arriving.get(key)?.place;
    this.#arriving.delete(key);
    if (place !== undefined) this.#grpc.take(socket, place);
  }

  /** Asks for a client certificate without insisting on one; what it shows follows the source. */
  #tlsServer(source: ServerIdentitySource): TlsServer {
    const server: TlsServer = createTlsServer({
      ...secureContext(source.current()),
      ALPNProtocols: ["h2"],
      requestCert: true,
      rejectUnauthorized: false,
      handshakeTimeout: HANDSHAKE_MS,
    });
    server.on("secureConnection", (socket) => {
      if (socket.alpnProtocol === "h2") this.#take(socket);
      else socket.destroy();
    });
    // Node has cut off a peer that speaks something else.
    server.on("tlsClientError", (_, { remoteAddress }) =>
      this.#admission.refused({ what: "connection", reason: "handshake", peer: peerName(remoteAddress) }),
    );
    this.#forget = source.subscribe((identity) => server.setSecureContext(secureContext(identity)));
    return server;
  }
}

function peerKey({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function secureContext({ certificates, key, clientRoots }: ServerIdentity): SecureContextOptions {
  return { cert: certificates, key, ca: clientRoots, minVersion: "TLSv1.2" };
}
