/** A gRPC server on one address, in plain text or with TLS. */
import { experimental, Server, ServerCredentials, type ServerOptions } from "@grpc/grpc-js";
import type { GrpcService } from "./grpc-service.ts";
import { listen } from "./listen.ts";
import { formatListenAddress, type ListenAddress } from "./listen-address.ts";
import type { ServerIdentity, ServerIdentitySource } from "./server-identity.ts";

export interface GrpcListenerOptions {
  readonly flag: string;
  readonly address: ListenAddress;
  readonly services: readonly GrpcService[];
  /** Absent: plain text. Clients may show a certificate and need not. */
  readonly identity?: ServerIdentitySource;
  readonly keepalive: Keepalive;
}

export interface Keepalive {
  /** A quiet connection is pinged after this time ... */
  readonly intervalMs: number;
  /** ... and closed when no answer comes in this one. */
  readonly timeoutMs: number;
  /** Connections are closed gracefully at this age, so that load spreads over replicas. */
  readonly maxConnectionAgeMs: number | undefined;
}

/** A node with its metadata is tens of kilobytes; nothing that clients send is near this. */
const MAX_REQUEST_BYTES = 4 * 1024 * 1024;
const MAX_STREAMS_PER_CONNECTION = 100_000;
/** Streams of xDS never end by themselves: a connection that was told to go is closed after this time. */
const AGE_GRACE_MS = 10_000;
/** Node's 64 KB would stall each large push once per 64 KB. */
const FLOW_CONTROL_WINDOW_BYTES = 4 * 1024 * 1024;

export class GrpcListener {
  readonly #options: GrpcListenerOptions;
  readonly #server: Server;

  constructor(options: GrpcListenerOptions) {
    this.#options = options;
    this.#server = new Server(serverOptions(options.keepalive));
    for (const { definition, implementation } of options.services) this.#server.addService(definition, implementation);
  }

  /** Begins to serve and answers with the address that was taken, such as `[::]:15010`. */
  async start(): Promise<string> {
    const { flag, address, identity } = this.#options;
    const credentials = identity === undefined ? ServerCredentials.createInsecure() : tlsCredentials(identity);
    const taken = await listen({
      flag,
      address,
      bind: (wanted) =>
        new Promise((resolve, reject) => {
          const target = formatListenAddress(wanted);
          this.#server.bindAsync(target, credentials, (error, port) => (error ? reject(error) : resolve(port)));
        }),
    });
    return formatListenAddress(taken);
  }

  /** Takes no more calls, lets the running ones finish, and cuts what is left after the grace time. */
  async stop(graceMs: number): Promise<void> {
    const cut = setTimeout(() => this.#server.forceShutdown(), graceMs);
    await new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()));
    clearTimeout(cut);
  }
}

function serverOptions({ intervalMs, timeoutMs, maxConnectionAgeMs }: Keepalive): ServerOptions {
  return {
    "grpc.max_receive_message_length": MAX_REQUEST_BYTES,
    "grpc.max_send_message_length": -1,
    "grpc.max_concurrent_streams": MAX_STREAMS_PER_CONNECTION,
    "grpc.keepalive_time_ms": intervalMs,
    "grpc.keepalive_timeout_ms": timeoutMs,
    "grpc-node.flow_control_window": FLOW_CONTROL_WINDOW_BYTES,
    ...(maxConnectionAgeMs !== undefined && {
      "grpc.max_connection_age_ms": maxConnectionAgeMs,
      "grpc.max_connection_age_grace_ms": AGE_GRACE_MS,
    }),
  };
}

type Provider = Parameters<typeof experimental.createCertificateProviderServerCredentials>[0];
type CaListener = Parameters<Provider["addCaCertificateListener"]>[0];
type IdentityListener = Parameters<Provider["addIdentityCertificateListener"]>[0];

/** Credentials that follow the source, and that ask for a client certificate without insisting on one. */
function tlsCredentials(source: ServerIdentitySource): ServerCredentials {
  const stops = new Map<CaListener | IdentityListener, () => void>();
  const follow = (listener: CaListener | IdentityListener, tell: (identity: ServerIdentity) => void) => {
    stops.set(listener, source.subscribe(tell));
    // Not at once: grpc-js asks before it listens itself, and would miss the first answer.
    queueMicrotask(() => tell(source.current()));
  };
  const forget = (listener: CaListener | IdentityListener) => {
    stops.get(listener)?.();
    stops.delete(listener);
  };
  const provider: Provider = {
    addCaCertificateListener: (listener) =>
      follow(listener, ({ clientRoots }) => listener({ caCertificate: Buffer.from(clientRoots) })),
    addIdentityCertificateListener: (listener) =>
      follow(listener, ({ certificates, key }) =>
        listener({ certificate: Buffer.from(certificates), privateKey: Buffer.from(key) }),
      ),
    removeCaCertificateListener: forget,
    removeIdentityCertificateListener: forget,
  };
  // One object for both arguments: grpc-js 1.14.7 takes them in the opposite order of their names.
  return experimental.createCertificateProviderServerCredentials(provider, provider, false);
}
