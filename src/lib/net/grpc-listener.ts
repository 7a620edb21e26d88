/** A gRPC server on one address, in plain text or with TLS. */
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { createServer as createTlsServer, type SecureContextOptions, type Server as TlsServer } from "node:tls";
import type { Keepalive } from "../grpc/keepalive.ts";
import { type GrpcServer, grpcServer, type Methods } from "../grpc/server.ts";
import { listen } from "./listen.ts";
import { formatListenAddress, type ListenAddress } from "./listen-address.ts";
import type { ServerIdentity, ServerIdentitySource } from "./server-identity.ts";

export interface GrpcListenerOptions {
  readonly flag: string;
  readonly address: ListenAddress;
  readonly services: readonly Methods[];
  /** Absent: plain text. Clients may show a certificate and need not. */
  readonly identity?: ServerIdentitySource;
  readonly keepalive: ConnectionLimits;
  /** Of one request; 4 MB when not given. */
  readonly maxRequestBytes?: number;
  /** Of one connection; 100,000 when not given. */
  readonly maxStreams?: number;
}

export interface ConnectionLimits extends Keepalive {
  /** Connections are closed gracefully at this age, so that load spreads over replicas. */
  readonly maxConnectionAgeMs: number | undefined;
}

/** A node with its metadata is tens of kilobytes; nothing that clients send is near this. */
const MAX_REQUEST_BYTES = 4 * 1024 * 1024;
const MAX_STREAMS_PER_CONNECTION = 100_000;
/** A client that does not finish its handshake in this time is cut off. */
const HANDSHAKE_MS = 20_000;

export class GrpcListener {
  readonly #options: GrpcListenerOptions;
  readonly #grpc: GrpcServer;
  readonly #sockets: Server;
  #forget: () => void = () => undefined;

  constructor(options: GrpcListenerOptions) {
    this.#options = options;
    const { services, identity, keepalive, maxRequestBytes, maxStreams } = options;
    this.#grpc = grpcServer(Object.assign({}, ...services), {
      maxMessageBytes: maxRequestBytes ?? MAX_REQUEST_BYTES,
      maxStreams: maxStreams ?? MAX_STREAMS_PER_CONNECTION,
      keepalive,
      maxAgeMs: keepalive.maxConnectionAgeMs,
    });
    this.#sockets = identity === undefined ? this.#plainText() : this.#tls(identity);
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
    await this.#grpc.stop(graceMs);
  }

  #plainText(): Server {
    return createServer({ noDelay: true }, (socket) => this.#grpc.take(socket));
  }

  /** Asks for a client certificate without insisting on one; what it shows follows the source. */
  #tls(source: ServerIdentitySource): Server {
    const server: TlsServer = createTlsServer({
      ...secureContext(source.current()),
      ALPNProtocols: ["h2"],
      requestCert: true,
      rejectUnauthorized: false,
      handshakeTimeout: HANDSHAKE_MS,
      noDelay: true,
    });
    server.on("secureConnection", (socket) => this.#grpc.take(socket));
    // Whoever speaks something else has been cut off already.
    server.on("tlsClientError", () => undefined);
    this.#forget = source.subscribe((identity) => server.setSecureContext(secureContext(identity)));
    return server;
  }
}

function secureContext({ certificates, key, clientRoots }: ServerIdentity): SecureContextOptions {
  return { cert: certificates, key, ca: clientRoots, minVersion: "TLSv1.2" };
}
